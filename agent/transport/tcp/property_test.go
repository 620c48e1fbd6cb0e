package tcp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// verify recounts the scoreboard: the counters must agree with the tags, the
// list in order of transmission with both, whatever has happened.
func (c *Conn) verify() error {
	s := &c.snd
	var sacked, lost, retrans, listed, buffers int
	seq := s.una
	for o := s.head; o < s.tail; o++ {
		r := s.at(o)
		if o > s.head && r.seq != seq {
			return fmt.Errorf("segment %d begins at %d, want %d", o, r.seq, seq)
		}
		seq = r.end()
		if r.tag&tagSacked != 0 {
			sacked++
		}
		if r.tag&tagLost != 0 {
			lost++
		}
		if r.tag&tagRetrans != 0 {
			retrans++
		}
		if r.tag&tagSacked != 0 && r.tag&tagLost != 0 {
			return fmt.Errorf("segment %d is SACKed and lost", o)
		}
		if r.listed {
			listed++
		}
		if r.tag&tagBuffer != 0 {
			buffers++
		}
	}
	if buffers != s.buffers {
		return fmt.Errorf("%d buffers end in the queue, %d are counted", buffers, s.buffers)
	}
	if !s.empty() && seq != s.nxt {
		return fmt.Errorf("the queue ends at %d, snd_nxt is %d", seq, s.nxt)
	}
	if int(s.tail-s.head) != s.packets {
		return fmt.Errorf("%d segments queued, packets_out %d", s.tail-s.head, s.packets)
	}
	if lost != s.lost || retrans != s.retrans || c.syn.sack && sacked != s.sacked {
		return fmt.Errorf("tags: %d SACKed, %d lost, %d retransmitted; counters %d, %d, %d", sacked, lost, retrans, s.sacked, s.lost, s.retrans)
	}
	if s.inFlight() < 0 {
		return fmt.Errorf("%d in flight", s.inFlight())
	}
	n := 0
	last := int64(-1)
	for p := s.oldest; p != 0; p = s.at(p - 1).next {
		if at := s.at(p - 1).at; at < last {
			return fmt.Errorf("the list is not in order of transmission")
		} else {
			last = at
		}
		if n++; n > listed {
			return fmt.Errorf("the list is longer than %d", listed)
		}
	}
	if n != listed {
		return fmt.Errorf("%d listed, %d in the list", listed, n)
	}
	if c.state != Closed && s.packets > 0 && c.tmr.xmit == vtime.Never && c.tmr.pace == vtime.Never {
		return fmt.Errorf("%d segments out and no timer", s.packets)
	}
	r := &c.rcv
	at := r.nxt
	for _, b := range r.ofo {
		if b.Start <= at || b.End <= b.Start {
			return fmt.Errorf("out-of-order block %v after %d", b, at)
		}
		at = b.End
	}
	if r.copied > r.nxt {
		return fmt.Errorf("read to %d, received to %d", r.copied, r.nxt)
	}
	if r.mem < 0 || r.ofoMem < 0 {
		return fmt.Errorf("memory %d, out of order %d", r.mem, r.ofoMem)
	}
	return nil
}

// peer is an application that writes a fixed amount, reads at its own pace
// and closes when it has written all.
type peer struct {
	write, wrote, read vtime.Bytes
	chunk              vtime.Bytes // most that one call reads; 0 = all
	closed             bool
}

func (p *peer) run(now vtime.Time, c *Conn) {
	for p.wrote < p.write {
		n := c.Write(now, min(p.write-p.wrote, 10000))
		if n == 0 {
			break
		}
		p.wrote += n
	}
	n := vtime.Bytes(1 << 40)
	if p.chunk > 0 {
		n = p.chunk
	}
	p.read += c.Read(now, n)
	if !p.closed && p.wrote == p.write && (c.State() == Established || c.State() == CloseWait) {
		p.closed = true
		c.Close(now)
	}
}

// randomLine draws options, path and applications from a seed.
func randomLine(t testing.TB, seed uint64) (*line, [2]*peer) {
	rng := rand.New(rand.NewPCG(seed, 77))
	one := func(p float64) bool { return rng.Float64() < p }
	var cfg [2]Config
	for i := range cfg {
		c := DefaultConfig()
		c.CC = Controls()[rng.IntN(len(Controls()))]
		c.SACK, c.Timestamps, c.WindowScale = one(0.8), one(0.7), one(0.8)
		c.FRTO, c.TLP, c.TSO, c.DSACK, c.NoDelay = one(0.8), one(0.8), one(0.7), one(0.8), one(0.3)
		c.MSS = []int{1460, 536, 1024, 100}[rng.IntN(4)]
		c.Retries = 100
		c.SYNRetries = 100
		if one(0.3) {
			c.RecvWindow = 2 + rng.IntN(40)
		}
		if one(0.2) {
			c.CwndCap = 1 + rng.IntN(20)
		}
		if one(0.2) {
			c.Ack = AckEvery
		}
		if one(0.3) {
			c.RecvBuffer = 4096 + vtime.Bytes(rng.IntN(20000))
			c.RecvBufferMax = c.RecvBuffer * vtime.Bytes(1+rng.IntN(8))
		}
		if one(0.3) {
			c.Tick = 0
		}
		cfg[i] = c
	}
	l := newLine(t, cfg[0], cfg[1], seed)
	var peers [2]*peer
	for i := range l.dir {
		l.dir[i] = wire{
			rate:  vtime.BitRate(100_000 + rng.IntN(20_000_000)),
			delay: vtime.Duration(rng.IntN(100)) * vtime.Millisecond,
			limit: 2 + rng.IntN(60),
		}
		if one(0.6) {
			l.dir[i].loss = rng.Float64() * 0.2
		}
		if one(0.5) {
			l.dir[i].reorder, l.dir[i].extra = rng.Float64()*0.3, vtime.Duration(1+rng.IntN(200))*vtime.Millisecond
		}
		if one(0.3) {
			l.dir[i].dup = rng.Float64() * 0.2
		}
		p := &peer{write: vtime.Bytes(rng.IntN(400_000))}
		if one(0.3) {
			p.write = vtime.Bytes(rng.IntN(3000))
		}
		if one(0.3) {
			p.chunk = vtime.Bytes(100 + rng.IntN(5000))
		}
		peers[i] = p
		l.app[i] = p.run
	}
	return l, peers
}

// TestEveryByteArrivesOnce: over lossy, reordering, duplicating paths with
// random options both directions deliver exactly what was written and both
// ends close, for hundreds of seeds.
func TestEveryByteArrivesOnce(t *testing.T) {
	seeds := 600
	if testing.Short() {
		seeds = 100
	}
	for seed := range uint64(seeds) {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { transfer(t, seed) }) {
			return
		}
	}
}

func transfer(t *testing.T, seed uint64) {
	l, peers := randomLine(t, seed)
	l.after = func(i int) {
		if err := l.end[i].verify(); err != nil {
			t.Fatalf("%v: end %d: %v", l.now, i, err)
		}
	}
	l.open()
	// A slow reader is woken now and then, as a process would be. The time is
	// generous: without SACK, lost ACKs make timestamps echo minutes-old
	// values, and the RTO then reaches its maximum.
	limit := vtime.Time(1000 * vtime.Hour)
	for l.now < limit {
		l.run(l.now.Add(max(50*vtime.Millisecond, vtime.Duration(l.now)/500)))
		for i := range peers {
			l.settle(i)
		}
		if peers[0].done(l.end[0], peers[1]) && peers[1].done(l.end[1], peers[0]) {
			break
		}
	}
	for i, p := range peers {
		c, q := l.end[i], peers[1-i]
		// With a timeout longer than the peer's TIME-WAIT the last FIN may meet
		// a closed end; its RST comes when all data was read.
		late := c.Err() == ErrReset && q.read == p.write
		if c.Err() != nil && !late || p.wrote != p.write || p.read != q.write {
			t.Fatalf("end %d: wrote %v of %v, read %v of %v, state %v, error %v, at %v\n%+v", i, p.wrote, p.write, p.read, q.write, c.State(), c.Err(), l.now, c.Info())
		}
		if got := c.Info().BytesReceived; got != q.write {
			t.Errorf("end %d: received %v in order, want %v", i, got, q.write)
		}
	}
}

func (p *peer) done(c *Conn, other *peer) bool {
	return c.Err() != nil || p.wrote == p.write && p.read == other.write && p.closed && (c.State() == Closed || c.State() == TimeWait)
}

// TestDeterminism: the same seed gives the same segments at the same times,
// on every architecture: the hashes are golden (-update).
func TestDeterminism(t *testing.T) {
	const golden = "testdata/traces.golden"
	var all strings.Builder
	defer func() {
		if *update {
			if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != all.String() {
			t.Errorf("%s: %v: the traces differ; if behaviour was meant to change, -update\n%s", golden, err, lineDiff(string(want), all.String()))
		}
	}()
	for seed := range uint64(20) {
		var want uint64
		for k := range 3 {
			l, _ := randomLine(t, seed)
			l.open()
			l.run(vtime.Time(20 * vtime.Second))
			if k == 0 {
				want = l.hash
			} else if l.hash != want {
				t.Fatalf("seed %d: trace %x, then %x", seed, want, l.hash)
			}
		}
		fmt.Fprintf(&all, "%d %016x\n", seed, want)
	}
}

// TestNoSteadyAllocation: after the warm-up nothing allocates.
func TestNoSteadyAllocation(t *testing.T) {
	for _, cc := range Controls() {
		l := path(t, cc, 20*vtime.MbitPerSecond, 20*vtime.Millisecond, 100, 0.002, 3)
		l.run(vtime.Time(20 * vtime.Second))
		// The line's heap boxes one event per push; count only what the
		// machines add to it.
		base := testing.AllocsPerRun(1, func() {})
		s := l.pool.Get()
		*s = Segment{Seq: l.end[0].rcv.nxt, Ack: l.end[0].snd.una, Flags: ACK, WScale: -1, Window: 1000}
		c := l.end[0]
		n := testing.AllocsPerRun(1000, func() {
			l.now = l.now.Add(100 * vtime.Microsecond)
			if c.snd.packets > 2 {
				s.Ack = c.snd.at(c.snd.head + 1).end()
			}
			c.Receive(l.now, s)
			c.Expire(l.now)
			bulk(l.now, c)
			for {
				g, ok := c.Poll(l.now)
				if !ok {
					break
				}
				l.pool.Put(g)
			}
		})
		if n > base {
			t.Errorf("%s: %.3f allocations per ACK", cc, n)
		}
	}
}
