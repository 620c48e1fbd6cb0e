package capture

import (
	"bytes"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/inet"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

const ms = vtime.Millisecond

// datagrams makes a UDP datagram of every packet; a payload is its number.
type datagrams struct{}

func (datagrams) Append(b []byte, p Packet, limit int) ([]byte, uint16) {
	n, _ := p.Payload.(int)
	dst := [4]byte{10, 77, 255, 255}
	if p.Dst != wifi.Broadcast {
		dst = tap.Addr(p.Dst).As4()
	}
	h := inet.IPv4{Length: uint16(p.Len), ID: uint16(n), TTL: 64, Protocol: inet.ProtocolUDP, Src: tap.Addr(p.Src).As4(), Dst: dst}
	at := len(b)
	b = h.AppendUDP(h.Append(b), 40000, 40001, nil)
	for len(b) < at+limit {
		b = append(b, 0)
	}
	return b, typeIPv4
}

// lab is a radio cell of three nodes and a wired link from the last to a server.
type lab struct {
	t     testing.TB
	eng   *des.Engine
	med   *wifi.Medium
	pipes [2]*pipe.Pipe
	cfg   Config
	n     int
}

func (l *lab) Deliver(vtime.Time, int, *wifi.Frame)       {}
func (l *lab) Done(vtime.Time, *wifi.Frame, wifi.Outcome) {}

type discard struct{}

func (discard) Deliver(vtime.Time, *pipe.Packet)          {}
func (discard) Drop(vtime.Time, *pipe.Packet, pipe.Cause) {}

// newLab makes the network; edit may change the radio.
func newLab(t testing.TB, edit func(*wifi.MAC)) *lab {
	t.Helper()
	l := &lab{t: t, eng: des.New()}
	mac := wifi.DefaultMAC(wifi.StandardB)
	mac.Queues[wifi.BK].Ack = wifi.AckNone
	if edit != nil {
		edit(&mac)
	}
	ch, err := wifi.NewChannel(1, wifi.DiskRadio(100, 100), mac, make([]wifi.Position, 3))
	if err != nil {
		t.Fatal(err)
	}
	if l.med, err = wifi.NewMedium(l.eng, 1, ch, []wifi.MAC{mac}, l); err != nil {
		t.Fatal(err)
	}
	for e := range l.pipes {
		c := pipe.Config{Rate: 10 * vtime.MbitPerSecond, Delay: 5 * ms, Queue: pipe.Queue{Packets: 4}, Loss: pipe.Loss{Good: 0.1}, LossAfterQueue: e == 1, Duplicate: 0.1}
		if l.pipes[e], err = pipe.New(l.eng, 1, "pipe/0/"+string(rune('0'+e)), c, discard{}); err != nil {
			t.Fatal(err)
		}
	}
	l.cfg = Config{
		Nodes: []string{"a", "b", "ap", "server"}, MACs: []wifi.MAC{mac}, Packets: datagrams{}, SnapLen: DefaultSnapLen, Comment: "a test",
		Links: []Link{{Ends: [2]int{2, 3}, Interfaces: [2]string{"eth0", "eth0"}, Rate: [2]vtime.BitRate{10 * vtime.MbitPerSecond, 10 * vtime.MbitPerSecond}}},
	}
	return l
}

// watch puts a sniffer onto everything.
func (l *lab) watch(packets, events *Stream) *Sniffer {
	l.t.Helper()
	s, err := NewSniffer(l.cfg, packets, events)
	if err != nil {
		l.t.Fatal(err)
	}
	l.med.SetMonitor(s)
	for e, p := range l.pipes {
		p.SetMonitor(s.Pipe(0, e))
	}
	return s
}

// Fire implements des.Handler: it sends packets of all kinds.
func (l *lab) Fire(now vtime.Time, arg uint64) {
	l.n++
	for i := range 3 {
		f := l.med.NewFrame()
		f.Src, f.Dst, f.AC, f.Len, f.Payload = i, (i+1)%3, wifi.AC(l.n%wifi.NumAC), vtime.Bytes(100+100*(l.n%14)), l.n%200 // small numbers do not allocate
		if l.n%10 == i {
			f.Dst = wifi.Broadcast
		}
		l.med.Enqueue(f)
	}
	for e, p := range l.pipes {
		for range 1 + l.n%7 { // sometimes more than the queue holds
			k := p.NewPacket()
			k.Len, k.Payload = vtime.Bytes(40+(e+50*l.n)%1460), l.n%200
			p.Send(k)
		}
	}
	if arg > 1 {
		l.eng.Schedule(now.Add(vtime.Duration(1+l.n%3)*ms), l, arg-1)
	}
}

// run sends n bursts from time 0 on and lets the network come to rest.
func (l *lab) run(n int) {
	l.eng.Schedule(l.eng.Now(), l, uint64(n))
	for l.eng.Step() {
	}
}

// record runs n bursts and returns the capture and the log.
func (l *lab) record(n int) (packets, events []byte, s *Sniffer) {
	l.t.Helper()
	var p, e bytes.Buffer
	s = l.watch(NewStream(&p), NewStream(&e))
	s.Begin(0, "")
	l.run(n)
	s.End(l.eng.Now())
	return p.Bytes(), e.Bytes(), s
}
