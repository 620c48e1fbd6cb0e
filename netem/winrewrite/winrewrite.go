package winrewrite

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Config is how windows are bounded.
type Config struct {
	// Buffer is the queue's length B in packets.
	Buffer int `json:"buffer"`
	// Weighted shares the buffer by what the connections put into it,
	// ⌊B/(n_d + αn_u)⌋ segments each: one packet for each segment of the n_d
	// connections whose data pass it, and Acks for each of the n_u whose
	// acknowledgements do. Otherwise every connection counts one: ⌊B/n⌋.
	Weighted bool `json:"weighted,omitempty"`
	// Acks is α, the acknowledgements that a receiver sends per segment; above 0,
	// at most 1. Looked at where Weighted is set.
	Acks float64 `json:"acks,omitempty"`
	// Idle is how long a connection counts after its last segment; 0 = 5 s.
	Idle vtime.Duration `json:"idle,omitempty"`
}

// DefaultIdle is how long a connection counts after its last segment.
const DefaultIdle = 5 * vtime.Second

// Validate reports the first setting that cannot be honoured.
func (c *Config) Validate() error {
	switch {
	case c.Buffer < 1:
		return fmt.Errorf("window rewriting: a buffer of %d packets: want 1 or more", c.Buffer)
	case c.Weighted && !(c.Acks > 0 && c.Acks <= 1):
		return fmt.Errorf("window rewriting: %v acknowledgements per segment: want above 0, at most 1", c.Acks)
	case c.Idle < 0:
		return fmt.Errorf("window rewriting: connections that count for %v: want a time above 0, 0 for %v", c.Idle, DefaultIdle)
	}
	return nil
}

// Stats counts what a Rewriter did.
type Stats struct {
	Segments  uint64 `json:"segments"`  // TCP segments seen, both ways
	Rewritten uint64 `json:"rewritten"` // of these, with a smaller window than they came with
	// Unscaled segments passed unchanged because their sender's SYN was not seen: what their
	// window field means is not known.
	Unscaled  uint64 `json:"unscaled"`
	MaxActive int    `json:"max_active"` // most connections that counted at once
	MinLimit  int    `json:"min_limit"`  // least bound in segments; 0: none was applied
}

// Counter is a number with the name under which results have it.
type Counter struct {
	Name  string
	Value int64
}

// Counters are the numbers by their names.
func (s Stats) Counters() []Counter {
	return []Counter{
		{"rewriting_segments", int64(s.Segments)},
		{"rewriting_rewritten", int64(s.Rewritten)},
		{"rewriting_unscaled", int64(s.Unscaled)},
		{"rewriting_max_connections", int64(s.MaxActive)},
		{"rewriting_min_segments", int64(s.MinLimit)},
	}
}

// Direction is the way of a segment through the queue's owner.
type Direction uint8

// The directions.
const (
	Down Direction = iota // through the queue
	Up                    // the other way, past it
)

// Addr is an address and port of one end of a connection. IPv4 addresses are
// mapped into IPv6 (RFC 4291 §2.5.5.2).
type Addr struct {
	IP   [16]byte
	Port uint16
}

// Segment is what a Rewriter has to know of a TCP segment.
type Segment struct {
	Src, Dst Addr
	SYN      bool
	Window   uint16 // the field of the header
	Payload  int    // bytes
	// The options of a SYN. MSS 0 and WScale -1 mean that the option is absent.
	MSS    int
	WScale int
}

// maxConns bounds the connections that are remembered, so that a flood of SYNs
// does not exhaust the memory. The one that was silent for longest goes first.
const maxConns = 1 << 14

// conn is one connection. Those that count are in the list active, the others in idle, both in
// the order of their last segment.
type conn struct {
	id         [2]Addr // the smaller one first
	ends       [2]end
	last       vtime.Time
	active     bool
	data       [2]bool // data was seen in a direction since it counts
	prev, next *conn
}

// end is what one end's SYN said.
type end struct {
	known bool
	mss   int
	scale int // −1: no option
}

// list is a doubly linked list of connections, the latest first.
type list struct {
	first, last *conn
	len         int
}

// Rewriter is the filter of one queue.
type Rewriter struct {
	cfg          Config
	conns        map[[2]Addr]*conn
	active, idle list
	down, up     int // active connections with data in either direction
	silent       int // … and with none yet
	stats        Stats
}

// New returns a filter that has seen nothing.
func New(cfg Config) (*Rewriter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Idle == 0 {
		cfg.Idle = DefaultIdle
	}
	return &Rewriter{cfg: cfg, conns: map[[2]Addr]*conn{}}, nil
}

// Stats returns what was counted so far.
func (r *Rewriter) Stats() Stats { return r.stats }

// Active returns the number of connections that count at a time.
func (r *Rewriter) Active(now vtime.Time) int {
	r.expire(now)
	return r.active.len
}

// See takes note of a segment and returns the window field that it is to have:
// the one it has, or a smaller one. Times do not go backwards.
func (r *Rewriter) See(now vtime.Time, s *Segment, d Direction) uint16 {
	r.stats.Segments++
	r.expire(now)
	c, src := r.touch(now, s)
	if s.Payload > 0 && !c.data[d] {
		r.class(c, -1)
		c.data[d] = true
		r.class(c, +1)
	}
	e := &c.ends[src]
	if s.SYN {
		*e = end{known: true, mss: s.MSS, scale: s.WScale}
	}
	if !e.known {
		r.stats.Unscaled++
		return s.Window
	}
	limit := r.limit()
	w := c.field(src, s.SYN, limit)
	if int64(s.Window) <= w {
		return s.Window
	}
	r.stats.Rewritten++
	if r.stats.MinLimit == 0 || limit < r.stats.MinLimit {
		r.stats.MinLimit = limit
	}
	return uint16(w)
}

// limit is the bound in segments: at least 1.
func (r *Rewriter) limit() int {
	share := float64(r.active.len)
	if r.cfg.Weighted {
		share = float64(r.down+r.silent) + r.cfg.Acks*float64(r.up)
	}
	return max(1, int(math.Floor(float64(r.cfg.Buffer)/share)))
}

// defaultMSS is that of an end that does not say (RFC 9293 §3.7.1).
const defaultMSS = 536

// field is the largest window field with which an end offers at most limit
// segments. A segment is what both ends allow, since the smaller MSS is the one
// that is sent. What the scale cannot express is rounded up, as long as no
// further segment fits: rounded down, the last segment would be lost to the
// sender, and a window below one segment would make it send smaller ones.
func (c *conn) field(src int, syn bool, limit int) int64 {
	mss := math.MaxInt
	for i := range c.ends {
		if e := &c.ends[i]; e.known && e.mss > 0 {
			mss = min(mss, e.mss)
		} else if e.known {
			mss = min(mss, defaultMSS)
		}
	}
	// RFC 7323 §2.2: a SYN's window is not scaled; §1.3: no window is, unless both
	// SYNs have the option. §2.3: shifts above 14 count as 14.
	shift := 0
	if a, b := &c.ends[src], &c.ends[1-src]; !syn && a.scale >= 0 && b.known && b.scale >= 0 {
		shift = min(a.scale, 14)
	}
	unit := int64(1) << shift
	bytes := int64(limit) * int64(mss)
	w := (bytes + unit - 1) / unit
	if unit > int64(mss) {
		w = max(1, bytes/unit)
	}
	return w
}

// touch finds or makes a segment's connection, and says which of its ends sent it.
func (r *Rewriter) touch(now vtime.Time, s *Segment) (*conn, int) {
	id, src := [2]Addr{s.Src, s.Dst}, 0
	if less(&s.Dst, &s.Src) {
		id, src = [2]Addr{s.Dst, s.Src}, 1
	}
	c := r.conns[id]
	if c == nil {
		if len(r.conns) >= maxConns {
			r.forget()
		}
		c = &conn{id: id}
		r.conns[id] = c
	} else {
		r.listOf(c).remove(c)
	}
	c.last = now
	if !c.active {
		c.active, c.data = true, [2]bool{}
		r.class(c, +1)
	}
	r.active.push(c)
	r.stats.MaxActive = max(r.stats.MaxActive, r.active.len)
	return c, src
}

// expire moves the connections that count no more.
func (r *Rewriter) expire(now vtime.Time) {
	for c := r.active.last; c != nil && now.Sub(c.last) >= r.cfg.Idle; c = r.active.last {
		r.active.remove(c)
		r.class(c, -1)
		c.active = false
		r.idle.push(c)
	}
}

// forget drops the connection that was silent for longest.
func (r *Rewriter) forget() {
	c := r.idle.last
	if c == nil {
		c = r.active.last
	}
	r.listOf(c).remove(c)
	if c.active {
		r.class(c, -1)
	}
	delete(r.conns, c.id)
}

// class adds n to the classes of a connection.
func (r *Rewriter) class(c *conn, n int) {
	if c.data[Down] {
		r.down += n
	}
	if c.data[Up] {
		r.up += n
	}
	if !c.data[Down] && !c.data[Up] {
		r.silent += n
	}
}

func (r *Rewriter) listOf(c *conn) *list {
	if c.active {
		return &r.active
	}
	return &r.idle
}

func (l *list) push(c *conn) {
	c.prev, c.next = nil, l.first
	if l.first == nil {
		l.last = c
	} else {
		l.first.prev = c
	}
	l.first = c
	l.len++
}

func (l *list) remove(c *conn) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.len--
}

func less(a, b *Addr) bool {
	for i := range a.IP {
		if a.IP[i] != b.IP[i] {
			return a.IP[i] < b.IP[i]
		}
	}
	return a.Port < b.Port
}
