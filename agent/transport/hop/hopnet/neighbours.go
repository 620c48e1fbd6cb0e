package hopnet

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// neighbour is a node that packets are exchanged with directly.
type neighbour struct {
	id     NodeID // 0: it was asked, and has not answered
	addr   netip.AddrPort
	fixed  bool // in Config.Peers: never forgotten
	fixID  bool // its id is in Config.Peers, too
	radio  bool
	epoch  uint64
	heard  vtime.Time
	echo   uint64 // the cookie that it gave
	asked  int    // introductions that were not answered
	askAt  vtime.Time
	known  bool // it has answered an introduction
	wanted chan struct{}
}

// neighbours are all of them, by address and by id.
type neighbours struct {
	byAddr map[netip.AddrPort]*neighbour
	byID   map[NodeID]*neighbour
	list   []*neighbour
	secret [32]byte

	// Introductions to addresses that nobody is known at are answers to whoever
	// sends there, so they are few: a bucket of introBurst that fills at
	// introRate a second.
	tokens float64
	filled vtime.Time
}

const (
	mostNeighbours = 1024
	forgetAfter    = 5 * vtime.Minute // a neighbour that nobody configured makes room
	introRate      = 200
	introBurst     = 200
	askFirst       = 200 * vtime.Millisecond
	askMost        = 10 * vtime.Second
)

func (t *neighbours) init() {
	t.byAddr, t.byID = make(map[netip.AddrPort]*neighbour), make(map[NodeID]*neighbour)
	_, _ = rand.Read(t.secret[:])
	t.tokens = introBurst
}

// cookie is what only somebody at the address can know.
func (t *neighbours) cookie(a netip.AddrPort) uint64 {
	h := hmac.New(sha256.New, t.secret[:])
	b, _ := a.MarshalBinary()
	h.Write(b)
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1 // never 0
}

// allowance takes one introduction to a stranger.
func (t *neighbours) allowance(now vtime.Time) bool {
	t.tokens = min(introBurst, t.tokens+now.Sub(t.filled).Seconds()*introRate)
	t.filled = now
	if t.tokens < 1 {
		return false
	}
	t.tokens--
	return true
}

// add makes a neighbour; nil if there is no room.
func (t *neighbours) add(now vtime.Time, a netip.AddrPort, id NodeID) *neighbour {
	if len(t.list) >= mostNeighbours && !t.evict(now) {
		return nil
	}
	p := &neighbour{id: id, addr: a, heard: now}
	t.list = append(t.list, p)
	t.byAddr[a] = p
	if id != 0 {
		t.byID[id] = p
	}
	return p
}

// evict forgets the neighbour that was heard longest ago, if that is long ago.
func (t *neighbours) evict(now vtime.Time) bool {
	var old *neighbour
	for _, p := range t.list {
		if !p.fixed && now.Sub(p.heard) > forgetAfter && (old == nil || p.heard < old.heard) {
			old = p
		}
	}
	if old == nil {
		return false
	}
	t.remove(old)
	return true
}

func (t *neighbours) remove(p *neighbour) {
	if t.byID[p.id] == p {
		delete(t.byID, p.id)
	}
	if t.byAddr[p.addr] == p {
		delete(t.byAddr, p.addr)
	}
	for i, x := range t.list {
		if x == p {
			t.list = append(t.list[:i], t.list[i+1:]...)
			return
		}
	}
}

// introduce sends an introduction to an address.
func (n *Node) introduce(a netip.AddrPort, echo uint64, asks bool) {
	slot := n.slot()
	if slot == nil {
		return // the batch is full: like any datagram, it may be lost
	}
	m := intro{id: n.cfg.ID, epoch: n.epoch, cookie: n.peers.cookie(a), echo: echo}
	m.put(slot[:introLen], asks)
	n.put(a, hop.Port(noPort), hop.Control, 0, introLen)
}

// ask sends the introductions that are due, and returns when the next one is.
func (n *Node) ask(now vtime.Time) vtime.Time {
	next := vtime.Never
	for _, p := range n.peers.list {
		if p.askAt == vtime.Never {
			continue
		}
		if now >= p.askAt {
			n.introduce(p.addr, p.echo, true)
			p.askAt = now.Add(min(askFirst<<min(p.asked, 10), askMost))
			p.asked++
			if p.fixID && p.asked >= 3 {
				p.askAt = vtime.Never // it may be of another kind; its id is known
			}
		}
		next = vtime.Min(next, p.askAt)
	}
	return next
}

// onIntro takes an introduction.
func (n *Node) onIntro(now vtime.Time, from netip.AddrPort, data []byte) {
	var m intro
	asks, ok := m.parse(data)
	if !ok || m.id == n.cfg.ID {
		n.counts.BadIntros++
		if ok {
			n.log("%v says that it is node %v, which is this node: one of them needs another id", from, m.id)
		}
		return
	}
	p := n.peers.byAddr[from]
	proven := m.echo == n.peers.cookie(from)
	if !proven {
		// It has to show first that it hears what is sent to that address. Nothing
		// is kept until then.
		switch {
		case p == nil && !n.cfg.Open:
			n.counts.Strangers++
		case p != nil || n.peers.allowance(now):
			n.introduce(from, m.cookie, true)
		}
		return
	}
	if p == nil {
		if !n.cfg.Open {
			n.counts.Strangers++
			return
		}
		if p = n.admit(now, from, &m); p == nil {
			return
		}
	}
	if p.fixID && p.id != m.id {
		n.log("%v was configured as node %v and says that it is node %v", from, p.id, m.id)
		n.counts.BadIntros++
		return
	}
	if other := n.peers.byID[m.id]; other != nil && other != p && !n.yields(now, other, p, &m) {
		return
	}
	if p.id != m.id {
		if n.peers.byID[p.id] == p {
			delete(n.peers.byID, p.id)
		}
		p.id = m.id
		n.peers.byID[m.id] = p
	}
	if !p.known {
		n.log("neighbour %v at %v", p.id, from)
	}
	p.heard, p.echo, p.asked, p.askAt, p.known = now, m.cookie, 0, vtime.Never, true
	if m.epoch > p.epoch {
		p.epoch = m.epoch
		n.lifeOf(p.id, m.epoch)
	}
	if p.wanted != nil {
		close(p.wanted)
		p.wanted = nil
	}
	if asks {
		n.introduce(from, m.cookie, false)
	}
}

// admit takes a neighbour that introduced itself.
func (n *Node) admit(now vtime.Time, from netip.AddrPort, m *intro) *neighbour {
	if other := n.peers.byID[m.id]; other != nil && !n.yields(now, other, nil, m) {
		return nil
	}
	p := n.peers.add(now, from, m.id)
	if p == nil {
		n.counts.Strangers++
		n.log("%v is not taken as a neighbour: there are %d", from, mostNeighbours)
	}
	return p
}

// yields reports whether a neighbour gives its id up to another address: one
// that nobody configured does when the other began its life later.
func (n *Node) yields(now vtime.Time, old, p *neighbour, m *intro) bool {
	if old.fixed || m.epoch <= old.epoch && now.Sub(old.heard) < forgetAfter {
		n.log("two neighbours say that they are node %v: %v is used", m.id, old.addr)
		n.counts.BadIntros++
		return false
	}
	if p != nil {
		p.epoch = max(p.epoch, old.epoch)
	}
	n.peers.remove(old)
	return true
}

// stranger is called for a packet from an address that nobody is known at: it
// may be a neighbour of an earlier life of this node.
func (n *Node) stranger(now vtime.Time, from netip.AddrPort) {
	n.counts.Strangers++
	if n.cfg.Open && n.peers.allowance(now) {
		n.introduce(from, 0, true)
	}
}
