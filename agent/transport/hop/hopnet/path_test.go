package hopnet

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// path stands between two nodes and loses, repeats and reorders what passes. Each
// side has an address of its own, at which the other node seems to be.
type path struct {
	sides [2]*net.UDPConn
	over  sync.WaitGroup

	mu           sync.Mutex
	to           [2]netip.AddrPort // the node behind side i; learnt from what it sends
	rng          *rand.Rand
	loss, dup    float64
	late         float64 // probability of a delay of up to lateBy
	lateBy       time.Duration
	down         bool
	record       func(i int, datagram []byte) // of what comes to side i
	passed, lost int
}

// newPath makes a path to the node at an address; what is behind it dials addr().
func newPath(t testing.TB, seed uint64, to netip.AddrPort) *path {
	t.Helper()
	p := &path{rng: rand.New(rand.NewPCG(seed, 1)), to: [2]netip.AddrPort{{}, to}}
	for i := range p.sides {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		p.sides[i] = c
		_ = c.SetReadBuffer(4 << 20)
	}
	for i := range p.sides {
		p.over.Go(func() { p.carry(i) })
	}
	t.Cleanup(func() {
		for _, c := range p.sides {
			c.Close()
		}
		p.over.Wait()
	})
	return p
}

// addr is where the node behind the path seems to be.
func (p *path) addr() string { return p.sides[0].LocalAddr().String() }

// carry takes what comes to side i to the node behind the other side.
func (p *path) carry(i int) {
	buf := make([]byte, 65_536)
	for {
		n, from, err := p.sides[i].ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if i == 0 {
			p.to[0] = from
		}
		to := p.to[1-i]
		if p.record != nil {
			p.record(i, buf[:n])
		}
		times := 1
		switch {
		case p.down || p.rng.Float64() < p.loss:
			times = 0
			p.lost++
		case p.rng.Float64() < p.dup:
			times = 2
		}
		p.passed += times
		var wait time.Duration
		if p.rng.Float64() < p.late {
			wait = time.Duration(p.rng.Int64N(int64(p.lateBy)))
		}
		p.mu.Unlock()
		for range times {
			if wait == 0 {
				p.sides[1-i].WriteToUDPAddrPort(buf[:n], to)
				continue
			}
			b := append([]byte(nil), buf[:n]...)
			p.over.Go(func() {
				time.Sleep(wait)
				p.sides[1-i].WriteToUDPAddrPort(b, to)
			})
		}
	}
}

// set changes what the path does.
func (p *path) set(f func(*path)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// again sends a datagram that has passed to the node behind side 1-i.
func (p *path) again(i int, datagram []byte) {
	p.mu.Lock()
	to := p.to[1-i]
	p.mu.Unlock()
	p.sides[1-i].WriteToUDPAddrPort(datagram, to)
}
