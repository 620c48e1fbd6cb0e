package kernelcompare

import (
	"testing"

	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// flow is a set of bulk flows between two model nodes over two pipes.
type flow struct {
	eng   *des.Engine
	pool  tcp.Pool
	src   []*host
	dst   []*host
	data  *pipe.Pipe
	back  *pipe.Pipe
	every vtime.Duration
	n     int
	srtt  float64
	cwnd  float64
}

// numbered is a segment with the number of its flow.
type numbered struct {
	seg  *tcp.Segment
	flow int
}

// side delivers what arrives at one node.
type side struct {
	f     *flow
	hosts *[]*host
}

func (d side) Deliver(now vtime.Time, p *pipe.Packet) {
	n := p.Payload.(*numbered)
	h := (*d.hosts)[n.flow]
	h.conn.Receive(now, n.seg)
	d.f.pool.Put(n.seg)
	h.settle(now)
}

func (d side) Drop(_ vtime.Time, p *pipe.Packet, _ pipe.Cause) {
	d.f.pool.Put(p.Payload.(*numbered).seg)
}

// mark is the sum of the counters of all flows at a moment.
type mark struct {
	src, dst tcp.Info
	pipe     pipe.Stats
}

func (f *flow) mark() mark {
	m := mark{pipe: f.data.Stats()}
	for i := range f.src {
		a, b := f.src[i].conn.Info(), f.dst[i].conn.Info()
		m.src.BytesRetrans += a.BytesRetrans
		m.src.BytesSent += a.BytesSent
		m.src.Timeouts += a.Timeouts
		m.src.TLPProbes += a.TLPProbes
		m.src.Undos += a.Undos
		m.src.ReordSeen += a.ReordSeen
		m.dst.BytesReceived += b.BytesReceived
		m.dst.SegsOut += b.SegsOut
		m.dst.DataSegsIn += b.DataSegsIn
	}
	return m
}

// host is one end of one flow.
type host struct {
	f     *flow
	id    int
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
		k.Len, k.Payload = s.WireLen(), &numbered{s, h.id}
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
	start := vtime.Time(des.NewStream(seed, "start").IntN(4_000_000))
	link := func(name string, loss float64, to *[]*host) *pipe.Pipe {
		p, err := pipe.New(f.eng, seed, name, pipe.Config{Rate: s.rate, Delay: s.rtt / 2,
			Queue: pipe.Queue{Packets: s.queue}, Loss: pipe.Loss{Good: vtime.Fraction(loss)}}, side{f, to})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	f.data, f.back = link("data", s.loss, &f.dst), link("ack", s.back, &f.src)
	for i := range max(s.flows, 1) {
		cfg.Seed = seed<<8 + uint64(i)
		add := func(to *[]*host, out *pipe.Pipe, bulk bool) *host {
			c, err := tcp.New(cfg, &f.pool)
			if err != nil {
				t.Fatal(err)
			}
			h := &host{f: f, id: i, conn: c, due: vtime.Never, out: out, bulk: bulk}
			*to = append(*to, h)
			return h
		}
		add(&f.dst, f.back, false).conn.Listen()
		h := add(&f.src, f.data, true)
		// The phase of the start against the timer tick is random in the kernel.
		f.eng.AdvanceTo(start)
		h.conn.Connect(start)
		h.settle(start)
		f.eng.RunUntil(start.Add(200 * vtime.Microsecond))
		start = f.eng.Now()
	}
	for _, h := range f.src { // the kernel's interval begins when all are connected
		for h.conn.State() == tcp.SynSent {
			start = start.Add(vtime.Millisecond)
			f.eng.RunUntil(start)
		}
	}
	begin := start.Add(vtime.FromSeconds(s.warm))
	f.eng.RunUntil(begin)
	m := f.mark()
	end := begin.Add(vtime.FromSeconds(s.secs))
	for at := begin; at <= end; at = at.Add(f.every) {
		f.eng.RunUntil(at)
		for _, h := range f.src {
			i := h.conn.Info()
			f.n++
			f.srtt += i.SRTT.Seconds() * 1000
			f.cwnd += float64(i.Cwnd)
		}
	}
	x := f.mark()
	a, b, p := x.src, x.dst, x.pipe
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
