package spec

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// accessPointFile is an access point with the given keys, and options of TCP.
func accessPointFile(ap, tcp, transport string) string {
	return `hopbed: 1
name: ap
topology:
  nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m]` + ap + `}, {name: sta, at: [10m, 0m]}]
  pipes: [{ends: [ap, server], rate: 100mbit, queue: {packets: 500}}]
flows: [{pairs: [{src: server, dst: sta}], transport: ` + transport + `}]
transports: {tcp: {mss: 1024B` + tcp + `}}
duration: 1s
`
}

func TestAccessPoints(t *testing.T) {
	e, err := Parse("x.yaml", []byte(accessPointFile(", queue: 50, window-rewriting: {share: weighted, acks: 0.5}", ", sack: false, timestamps: false, quick-ack: true", "tcp/reno")))
	if err != nil {
		t.Fatal(err)
	}
	c := e.Points()[0].Config
	n, o := c.Topology.Nodes[1], c.Transports.TCP
	if *n.Queue != 50 || *n.WindowRewriting != (WindowRewriting{Enabled: true, Share: ShareWeighted, Acks: 0.5, Idle: 5 * vtime.Second}) {
		t.Errorf("%+v", n)
	}
	if o.SACK || o.Timestamps || !o.QuickAck {
		t.Errorf("%+v", o)
	}
	if e, err = Parse("x.yaml", []byte(accessPointFile("", "", "tcp/reno"))); err != nil {
		t.Fatal(err)
	}
	c = e.Points()[0].Config
	if n, o := c.Topology.Nodes[1], c.Transports.TCP; n.Queue != nil || n.WindowRewriting != nil || !o.SACK || !o.Timestamps || o.QuickAck {
		t.Errorf("left out: %+v, %+v", n, o)
	}
}

func TestWrongAccessPoints(t *testing.T) {
	for _, c := range []struct {
		name, ap, tcp, transport string
		want                     []string
	}{
		{"a queue of nothing", ", queue: 0", "", "tcp/reno", []string{"topology.nodes[1].queue", "out of range"}},
		{"no radio", ", radio: false, queue: 5, window-rewriting: {}", "", "tcp/reno", []string{"topology.nodes[1].queue", "no radio", "topology.nodes[1].window-rewriting"}},
		{"acks of an equal share", ", window-rewriting: {acks: 0.5}", "", "tcp/reno", []string{"window-rewriting.acks", "share: equal"}},
		{"too many acks", ", window-rewriting: {share: weighted, acks: 1.5}", "", "tcp/reno", []string{"window-rewriting.acks", "out of range"}},
		{"another share", ", window-rewriting: {share: fair}", "", "tcp/reno", []string{"window-rewriting.share", "equal, weighted"}},
		{"SACK of hop by hop", "", ", sack: false", "hop-by-hop-tcp/reno", []string{"transports.tcp.sack", "hop-by-hop-tcp/reno"}},
		{"quick ACKs of a program", "", ", quick-ack: true, timestamps: false", "iperf3/reno", []string{"transports.tcp.quick-ack", "transports.tcp.timestamps", "iperf3/reno"}},
	} {
		_, err := Parse("x.yaml", []byte(accessPointFile(c.ap, c.tcp, c.transport)))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\ndoes not say %q", c.name, err, w)
			}
		}
	}
}
