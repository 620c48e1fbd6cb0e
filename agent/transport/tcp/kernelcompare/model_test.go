package kernelcompare

import (
	"testing"

	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// flow is a bulk flow between two model ends over two pipes.
type flow struct {
	eng   *des.Engine
	pool  tcp.Pool
	src   host
	dst   host
	mark  mark
	every vtime.Duration
	n     int
	srtt  float64
	cwnd  float64
}

type mark struct {
	at       vtime.Time
	src, dst tcp.Info
	pipe     pipe.Stats
}

// host is one end: it fires for its timer, and receives from the pipe that
// leads to it.
type host struct {
	f     *flow
	conn  *tcp.Conn
	out   *pipe.Pipe
	timer des.EventID
	due   vtime.Time
	bulk  bool
}

func (h *host) Fire(now vtime.Time, _ uint64) {
	h.timer, h.due = 0, vtime.Never
	h.conn.Expire(now)
	h.settle(now)
}

func (h *host) Deliver(now vtime.Time, p *pipe.Packet) {
	s := p.Payload.(*tcp.Segment)
	h.conn.Receive(now, s)
	h.f.pool.Put(s)
	h.settle(now)
}

func (h *host) Drop(_ vtime.Time, p *pipe.Packet, _ pipe.Cause) {
	h.f.pool.Put(p.Payload.(*tcp.Segment))
}

func (h *host) settle(now vtime.Time) {
	if h.bulk {
		for {
			if n := h.conn.Writable(); n == 0 || h.conn.Write(now, n) == 0 {
				break
			}
		}
	} else {
		h.conn.Read(now, 1<<40)
	}
	for {
		s, ok := h.conn.Poll(now)
		if !ok {
			break
		}
		k := h.out.NewPacket()
		k.Len, k.Payload = s.WireLen(), s
		h.out.Send(k)
	}
	if d := h.conn.Deadline(); d != h.due {
		h.f.eng.Cancel(h.timer)
		h.timer, h.due = 0, d
		if d != vtime.Never {
			h.timer = h.f.eng.Schedule(max(d, now), h, 0)
		}
	}
}

// runModel runs the scenario in virtual time.
func runModel(t testing.TB, s scenario, seed uint64, edit func(*tcp.Config)) result {
	t.Helper()
	f := &flow{eng: des.New(), every: 100 * vtime.Millisecond}
	cfg := tcp.DefaultConfig()
	cfg.CC, cfg.SACK = s.cc, s.sack
	if edit != nil {
		edit(&cfg)
	}
	for _, h := range []*host{&f.src, &f.dst} {
		c, err := tcp.New(cfg, &f.pool)
		if err != nil {
			t.Fatal(err)
		}
		h.f, h.conn, h.due = f, c, vtime.Never
	}
	f.src.bulk = true
	link := func(name string, loss float64, to *host) *pipe.Pipe {
		p, err := pipe.New(f.eng, seed, name, pipe.Config{Rate: s.rate, Delay: s.rtt / 2,
			Queue: pipe.Queue{Packets: s.queue}, Loss: pipe.Loss{Good: vtime.Fraction(loss)}}, to)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	f.src.out = link("data", s.loss, &f.dst)
	f.dst.out = link("ack", s.back, &f.src)
	// The phase of the start against the timer tick is random in the kernel.
	start := vtime.Time(des.NewStream(seed, "start").IntN(4_000_000))
	f.eng.AdvanceTo(start)
	f.dst.conn.Listen()
	f.src.conn.Connect(start)
	f.src.settle(start)

	begin := start.Add(vtime.FromSeconds(s.warm))
	f.eng.RunUntil(begin)
	f.mark = mark{begin, f.src.conn.Info(), f.dst.conn.Info(), f.src.out.Stats()}
	end := begin.Add(vtime.FromSeconds(s.secs))
	for at := begin; at <= end; at = at.Add(f.every) {
		f.eng.RunUntil(at)
		i := f.src.conn.Info()
		f.n++
		f.srtt += i.SRTT.Seconds() * 1000
		f.cwnd += float64(i.Cwnd)
	}
	a, b, p := f.src.conn.Info(), f.dst.conn.Info(), f.src.out.Stats()
	m := f.mark
	return result{
		goodput:  float64(b.BytesReceived-m.dst.BytesReceived) * 8 / s.secs,
		retrans:  float64(a.BytesRetrans-m.src.BytesRetrans) / float64(a.BytesSent-m.src.BytesSent),
		timeouts: float64(a.Timeouts-m.src.Timeouts) * 60 / s.secs,
		srtt:     f.srtt / float64(f.n),
		cwnd:     f.cwnd / float64(f.n),
		acks:     float64(b.SegsOut-m.dst.SegsOut) / float64(b.DataSegsIn-m.dst.DataSegsIn),
		tlp:      float64(a.TLPProbes-m.src.TLPProbes) * 60 / s.secs,
		drops:    float64(p.Overflows-m.pipe.Overflows) / float64(p.Entered-m.pipe.Entered),
		undos:    float64(a.Undos),
		reord:    float64(a.ReordSeen),
	}
}
