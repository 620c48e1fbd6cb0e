package emulator_test

import (
	"testing"
	"time"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// accessPoint is a station, an access point with a radio and a wire, and a wired
// server.
func accessPoint() *emulator.Config {
	cfg := line(2, 10, 150, 350)
	cfg.Nodes = make([]emulator.Node, 3)
	cfg.Nodes[2].NoRadio = true
	cfg.Positions = append(cfg.Positions, wifi.Position{}) // a wired node's is of no matter
	wired(cfg, 1, 0, 2, 0, pipe.Config{Rate: 100 * vtime.MbitPerSecond, Delay: 5 * ms, Queue: pipe.Queue{Packets: 100}})
	return cfg
}

// An access point routes between its radio and its wire.
func TestRoutingAccessPoint(t *testing.T) {
	l := bareLab(t, accessPoint(), emulator.Options{})
	const sta, ap, server = 0, 1, 2
	for i, name := range []string{"wlan0", "wlan0", "eth0"} {
		l.attach(i, name)
	}
	l.neighbour(sta, "wlan0", ap, tap.HardwareAddr(ap))
	l.route(sta, "wlan0", ap, ap)
	l.route(sta, "wlan0", server, ap)
	l.neighbour(ap, "wlan0", sta, tap.HardwareAddr(sta))
	l.route(ap, "wlan0", sta, sta)
	l.neighbour(ap, "eth0", server, tap.PipeHardwareAddr(server, 0))
	l.route(ap, "eth0", server, server)
	l.neighbour(server, "eth0", ap, tap.PipeHardwareAddr(ap, 0))
	l.route(server, "eth0", ap, ap)
	l.route(server, "eth0", sta, ap)
	rtt, ttl := l.ping(sta, server)
	if ttl != 63 || rtt < 10*time.Millisecond {
		t.Errorf("the echo took %v with TTL %d, want 63: one router", rtt, ttl)
	}
	if n, same, _ := l.transfer(server, sta, 200<<10, ""); n != 200<<10 || !same {
		t.Errorf("%d bytes arrived, or other ones", n)
	}
	r := l.stop()
	if r.Nodes[sta].Stats.Delivered < 140 || r.Nodes[sta].Frames.Written != r.Nodes[sta].Stats.Delivered || r.Measured.Frames.Unknown != 0 {
		t.Errorf("the station received %d frames over the radio, %d unknown", r.Nodes[sta].Stats.Delivered, r.Measured.Frames.Unknown)
	}
	if s := r.Pipes[0][1]; s.Delivered < 140 {
		t.Errorf("the wire carried %d packets from the server", s.Delivered)
	}
	if n := r.Nodes[server]; n.Frames != (emulator.FrameCounts{}) || n.Stats.Delivered != 0 || n.DeviceError != "" {
		t.Errorf("the wired node has a radio: %+v", n)
	}
	if err := l.proc.SetNodeUp(t.Context(), server, false); err == nil {
		t.Error("the radio of a node without one was switched")
	}
}

// An access point that bridges is invisible to IP: station and server find each
// other's addresses through it, and the server's packets come from its radio.
func TestBridgingAccessPoint(t *testing.T) {
	const sta, ap, server = 0, 1, 2
	cfg := accessPoint()
	cfg.Nodes[sta].Via = map[int]int{server: ap}
	l := bareLab(t, cfg, emulator.Options{})
	l.bridge(ap, "wlan0", "eth0")
	l.attach(sta, "wlan0")
	l.attach(server, "eth0")
	l.route(sta, "wlan0", server, server)
	l.route(sta, "wlan0", ap, ap)
	l.route(server, "eth0", sta, sta)
	l.route(server, "eth0", ap, ap)
	l.route(ap, "br0", sta, sta)
	l.route(ap, "br0", server, server)
	if rtt, ttl := l.ping(sta, server); ttl != 64 || rtt < 10*time.Millisecond {
		t.Errorf("the echo of the server took %v with TTL %d, want 64", rtt, ttl)
	}
	for _, i := range []int{sta, server} {
		if _, ttl := l.ping(i, ap); ttl != 64 {
			t.Errorf("node %d: echo of the bridge with TTL %d", i, ttl)
		}
	}
	if n, same, _ := l.transfer(sta, server, 200<<10, ""); n != 200<<10 || !same {
		t.Errorf("%d bytes arrived, or other ones", n)
	}
	r := l.stop()
	if r.Nodes[ap].Stats.Delivered < 140 || r.Pipes[0][0].Delivered < 140 || r.Measured.Frames.Unknown != 0 {
		t.Errorf("radio %d, wire %d packets, %d unknown", r.Nodes[ap].Stats.Delivered, r.Pipes[0][0].Delivered, r.Measured.Frames.Unknown)
	}
}
