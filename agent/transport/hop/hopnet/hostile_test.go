package hopnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// forged is a packet of Hop as anybody can make one (hop/DESIGN.md §2).
type forged struct {
	typ, flags, ttl byte
	src, dst, flow  uint32
	block           uint32
	attempt, seq    uint16
	count           uint16
	payload         []byte
}

func (f forged) bytes() []byte {
	be := binary.BigEndian
	b := make([]byte, hop.HeaderLen, hop.HeaderLen+len(f.payload))
	b[0], b[1], b[2], b[3] = hop.Version, f.typ, f.flags, max(f.ttl, 1)
	be.PutUint32(b[4:], f.src)
	be.PutUint32(b[8:], f.dst)
	be.PutUint32(b[12:], f.flow)
	be.PutUint32(b[16:], f.block)
	be.PutUint16(b[20:], f.attempt)
	be.PutUint16(b[22:], f.seq)
	be.PutUint16(b[24:], f.count)
	be.PutUint16(b[26:], uint16(len(f.payload)))
	b = append(b, f.payload...)
	be.PutUint32(b[36:], crc32.Update(crc32.Checksum(b[:36], castagnoli), castagnoli, b[hop.HeaderLen:]))
	return b
}

// announcement is the payload of a BSYN.
func announcement(size uint32, payload uint16, base uint32, hash uint64) []byte {
	b := make([]byte, 20)
	be := binary.BigEndian
	be.PutUint32(b, size)
	be.PutUint16(b[4:], payload)
	be.PutUint32(b[8:], base)
	be.PutUint64(b[12:], hash)
	return b
}

// attacker is a neighbour of a node that sends what it likes.
type attacker struct {
	conn *net.UDPConn
	to   *net.UDPAddr
}

func newAttacker(t testing.TB) *attacker {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &attacker{conn: c}
}

func (x *attacker) peer(id NodeID) Peer { return Peer{ID: id, Addr: x.conn.LocalAddr().String()} }

func (x *attacker) at(n *Node)    { x.to = net.UDPAddrFromAddrPort(n.LocalAddr()) }
func (x *attacker) send(b []byte) { x.conn.WriteToUDP(b, x.to) }

// What a neighbour makes up, and absurd packets of its own, cost the node nothing
// that is not bounded, and the flows of others nothing as long as it cannot know
// their numbers. One that stands on their way can hold them up, and no more.
func TestHostileNeighbour(t *testing.T) {
	for _, knows := range []bool{false, true} {
		t.Run(fmt.Sprintf("on the way %v", knows), func(t *testing.T) {
			if knows && testing.Short() {
				t.Skip("it takes as long as grants that were lied for")
			}
			hostileNeighbour(t, knows)
		})
	}
}

func hostileNeighbour(t *testing.T, knows bool) {
	x := newAttacker(t)
	const limit = 8 << 20
	tune := func(c *hop.Config) { c.MemoryLimit, c.MaxFlows = limit, 2048 }
	b := open(t, Config{ID: 2, Open: true, Peers: []Peer{x.peer(9)}, Tune: tune, Streams: 64})
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: b.LocalAddr().String()}, x.peer(9)}, Tune: tune})
	echo(t, b, 1)
	r := rand.New(rand.NewPCG(1, 1))
	stop, stopped := make(chan struct{}), make(chan int)
	next := uint32(1000)
	if knows {
		a.mu.Lock()
		next = uint32(a.flowTo(2))
		a.mu.Unlock()
	}
	go func() {
		n := 0
		defer func() { stopped <- n }()
		for ; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if n%64 == 0 {
				time.Sleep(time.Millisecond) // the socket's buffer is not the point
			}
			if r.IntN(2) == 0 {
				x.at(a)
			} else {
				x.at(b)
			}
			flow, block := next+uint32(r.IntN(3)), uint32(r.IntN(8))
			full := bytes.Repeat([]byte{0xff}, 94)
			full[93] = 0x1f
			switch r.IntN(12) {
			case 0: // noise
				x.send(random(uint64(n), 1+r.IntN(1500)))
			case 1: // noise behind a sound checksum
				x.send(forged{typ: byte(r.IntN(8)), flags: byte(r.IntN(32)), src: uint32(r.IntN(4)), dst: uint32(r.IntN(4)), flow: flow,
					block: r.Uint32(), attempt: uint16(r.IntN(5)), seq: uint16(r.IntN(800)), count: uint16(r.IntN(800)), payload: random(uint64(n), r.IntN(1432)&^7)}.bytes())
			case 2: // the next hop has the block
				x.send(forged{typ: 3, src: 1, dst: 2, flow: flow, block: block, attempt: uint16(r.IntN(5)), count: 749, payload: full}.bytes())
			case 3: // absurd sizes
				x.send(forged{typ: 2, src: 9, dst: 2, flow: r.Uint32(), count: uint16(r.Uint32()), payload: announcement(r.Uint32(), uint16(r.Uint32()), 0, 1)}.bytes())
			case 4, 5: // as large as may be, many flows, to end at and to pass through the node
				x.send(forged{typ: 2, src: 9, dst: uint32(1 + r.IntN(3)), flow: uint32(r.IntN(5000)), count: 749, payload: announcement(1<<20, 1400, 0, 1)}.bytes())
			case 6: // data of a block of its own, and of others' blocks
				src := []uint32{1, 9}[r.IntN(2)]
				x.send(forged{typ: 1, src: src, dst: 2, flow: []uint32{flow, uint32(r.IntN(5000))}[r.IntN(2)], block: block, attempt: 1, seq: uint16(r.IntN(748)), count: 749, payload: random(uint64(n), 1400)}.bytes())
			case 7: // another's block, announced by this neighbour
				x.send(forged{typ: 2, src: 1, dst: 2, flow: flow, block: block, attempt: 9, count: 749, payload: announcement(1<<20, 1400, 0, r.Uint64())}.bytes())
			case 8: // micro-blocks without a preamble, and with one that makes no sense
				p := preamble{kind: kind(r.IntN(6)), service: Service(r.IntN(3)), epoch: r.Uint64() >> 1, flow: hop.FlowID(flow), code: code(r.IntN(7)), mine: r.IntN(2) == 0}
				data := make([]byte, preambleLen+r.IntN(3))
				p.put(data)
				if r.IntN(2) == 0 {
					data = data[:1+r.IntN(len(data)-1)]
				}
				x.send(forged{typ: 2, flags: 1 | 2 | 8, src: 9, dst: 2, flow: r.Uint32(), count: 1,
					payload: append(announcement(uint32(len(data)), 1400, 0, xxh64(data)), data...)}.bytes())
			case 9: // tokens
				x.send(forged{typ: 4, ttl: 50, src: []uint32{1, 9}[r.IntN(2)], dst: 2, flow: flow, block: block, attempt: uint16(r.IntN(9)), count: 749, payload: announcement(1<<20, 1400, 0, 1)}.bytes())
			case 10: // end-to-end acknowledgements of what does not exist
				p := make([]byte, 12)
				binary.BigEndian.PutUint32(p, 1<<31)
				x.send(forged{typ: 6, ttl: 50, src: 1, dst: 2, flow: flow, block: 1 << 31, payload: p}.bytes())
			case 11: // introductions
				m := intro{id: NodeID(r.IntN(4)), epoch: r.Uint64(), cookie: r.Uint64(), echo: r.Uint64()}
				i := make([]byte, introLen)
				m.put(i, true)
				x.send(i)
			}
		}
	}()
	if !knows {
		for i := range 3 { // large blocks have to wait for grants that the attacker lets expire
			if err := roundTrip(t, a, 2, 1, random(uint64(i), 10_000)); err != nil {
				t.Error(err)
			}
		}
	} else if err := roundTripIn(t, time.Second, a, 2, 1, random(0, 300_000)); err != nil && strings.Contains(err.Error(), "not the") {
		t.Error(err) // bytes that nobody sent
	}
	close(stop)
	t.Logf("%d hostile datagrams", <-stopped)
	for _, n := range []*Node{a, b} {
		c := n.Counts()
		t.Logf("node %v: %+v", n.ID(), c)
		if c.Hop.MemoryPeak > 3*limit || c.Receivers > n.cfg.Streams+rememberEnded || c.Neighbours > 2 {
			t.Errorf("node %v: beyond its bounds", n.ID())
		}
	}
	if err := roundTrip(t, a, 2, 1, random(9, 300_000)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A neighbour that acknowledges in the destination's name makes the stream fail;
// a part of it is never taken for the whole.
func TestForgedEndToEndAcknowledgement(t *testing.T) {
	x := newAttacker(t)
	b := open(t, Config{ID: 2, Open: true})
	p := newPath(t, 1, b.LocalAddr())
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: p.addr()}, x.peer(9)}, Tune: func(c *hop.Config) { c.BlockSize = 100_000 }})
	x.at(a)
	c, d := dial(t, a, listen(t, b, 1))
	go func() { c.Write(random(1, 5<<20)); c.Close() }()
	io.ReadFull(d, make([]byte, 500_000))
	p.set(func(p *path) { p.down = true }) // what is under way is lost …
	time.Sleep(20 * time.Millisecond)
	a.mu.Lock()
	s, _ := a.hop.FlowStats(c.s.key)
	a.mu.Unlock()
	ack := make([]byte, 12)
	top := uint32(s.BlocksAcked) + uint32(s.Unacked)
	binary.BigEndian.PutUint32(ack, top)
	for a.Counts().Hop.Received == 0 || s.Unacked > 0 { // … and acknowledged
		x.send(forged{typ: 6, ttl: 50, src: 1, dst: 2, flow: uint32(c.s.key.Flow), block: top - 1, payload: ack}.bytes())
		time.Sleep(time.Millisecond)
		a.mu.Lock()
		now, ok := a.hop.FlowStats(c.s.key)
		a.mu.Unlock()
		if !ok || now.BlocksAcked >= uint64(top) {
			break
		}
	}
	p.set(func(p *path) { p.down = false })
	d.SetReadDeadline(time.Now().Add(soon))
	n, err := io.Copy(io.Discard, d)
	if !errors.Is(err, ErrReset) {
		t.Errorf("%d bytes, then %v; want a stream that fails", n, err)
	}
}

// What was sent once and comes again, in any order, is not delivered twice.
func TestReplay(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	p := newPath(t, 1, b.LocalAddr())
	a := open(t, Config{ID: 1, Peers: []Peer{{ID: 2, Addr: p.addr()}}})
	l := listen(t, b, 1)
	type passed struct {
		side int
		data []byte
	}
	var all []passed
	p.set(func(p *path) {
		p.record = func(i int, d []byte) { all = append(all, passed{i, bytes.Clone(d)}) }
	})
	blocks := make(chan []byte, 100)
	go func() {
		for {
			x, err := l.ReceiveBlock(within(t, 4*soon))
			if err != nil {
				return
			}
			blocks <- x.Data
		}
	}()
	const k = 12
	for i := range k {
		if err := a.SendBlock(within(t, soon), 2, 1, random(uint64(i), 10+i*i*5000)); err != nil {
			t.Fatal(err)
		}
	}
	p.set(func(p *path) { p.record = nil })
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 3 {
		if round == 2 { // what was forgotten is known, too
			b.mu.Lock()
			for key := range b.receivers {
				b.forgetReceiver(b.now(), key)
			}
			b.ended = nil
			b.mu.Unlock()
		}
		for n, i := range r.Perm(len(all)) {
			p.again(all[i].side, all[i].data)
			if n%32 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	if err := a.SendBlock(within(t, soon), 2, 1, []byte("the last")); err != nil {
		t.Fatal(err)
	}
	for i := range k {
		if got := <-blocks; !bytes.Equal(got, random(uint64(i), 10+i*i*5000)) {
			t.Fatalf("block %d is one of %d bytes", i, len(got))
		}
	}
	if got := <-blocks; string(got) != "the last" || len(blocks) > 0 {
		t.Errorf("%d datagrams three times: a block of %d bytes too much", len(all), len(got))
	}
}

// Strangers get an introduction each, up to a bound, and leave nothing.
func TestStrangers(t *testing.T) {
	b := open(t, Config{ID: 2, Open: true})
	x := newAttacker(t)
	x.at(b)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const k = 5000
	for i := range k {
		x.send(forged{typ: 2, src: 9, dst: 2, flow: uint32(i), count: 749, payload: announcement(1<<20, 1400, 0, 1)}.bytes())
		if i%64 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for end := time.Now().Add(soon); b.Counts().Strangers == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	c := b.Counts()
	if c.Neighbours != 0 || c.Receivers != 0 || c.Hop.Flows != 0 || c.Socket.Sent > 3*introBurst {
		t.Errorf("%+v", c)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more on the heap", grown)
	}
	t.Logf("%d datagrams of strangers, %d introductions", c.Strangers, c.Socket.Sent)
}

// xxh64 is XXH64 with seed 0 of fewer than 32 bytes, by its specification.
func xxh64(b []byte) uint64 {
	const p1, p2, p3, p4, p5 = 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261
	rot := func(x uint64, k int) uint64 { return x<<k | x>>(64-k) }
	h := uint64(p5) + uint64(len(b))
	le := binary.LittleEndian
	for ; len(b) >= 8; b = b[8:] {
		h = rot(h^rot(le.Uint64(b)*p2, 31)*p1, 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = rot(h^uint64(le.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, c := range b {
		h = rot(h^uint64(c)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}
