package datagram

import "net/netip"

// The batch: datagrams lie one behind the other in one piece of memory. Several
// of one size to one address form a train, which the kernel takes as a whole;
// the last one may be shorter (udp(7), UDP_SEGMENT).
const (
	mostDatagrams = 128
	mostSegments  = 64     // UDP_MAX_SEGMENTS of Linux before 6.x
	mostTrain     = 65_507 // bytes: the largest UDP payload over IPv4
	arenaSize     = mostDatagrams * MaxSize
)

// train is a run of datagrams of one size to one address.
type train struct {
	to       netip.AddrPort
	tos      uint8
	from     int // offset in the arena
	size     int // bytes
	segment  int // bytes of each datagram but the last
	segments int
}

// trains is the batch that is being filled, and what of it was handed over.
type trains struct {
	arena   []byte
	used    int
	list    []train
	next    int // the first that was not handed over
	pending int // datagrams
	joined  bool
}

func (t *trains) init(joined bool) {
	t.arena = make([]byte, arenaSize)
	t.list = make([]train, 0, mostDatagrams)
	t.joined = joined
}

func (t *trains) reset() { t.used, t.next, t.pending, t.list = 0, 0, 0, t.list[:0] }

func (t *trains) slot() []byte {
	if len(t.arena)-t.used < MaxSize || t.pending >= mostDatagrams || len(t.list) >= mostDatagrams {
		return nil
	}
	return t.arena[t.used : t.used+MaxSize : t.used+MaxSize]
}

func (t *trains) put(to netip.AddrPort, tos uint8, n int) {
	t.pending++
	t.used += n
	if k := len(t.list) - 1; t.joined && k >= t.next {
		if l := &t.list[k]; l.to == to && l.tos == tos && n <= l.segment && l.size == l.segments*l.segment &&
			l.segments < mostSegments && l.size+n <= mostTrain {
			l.size += n
			l.segments++
			return
		}
	}
	t.list = append(t.list, train{to: to, tos: tos, from: t.used - n, size: n, segment: n, segments: 1})
}

// bytes is the memory of a train.
func (t *trains) bytes(l *train) []byte { return t.arena[l.from : l.from+l.size] }

// gone takes the first k trains out of the batch.
func (t *trains) gone(k int) (datagrams int) {
	for range k {
		datagrams += t.list[t.next].segments
		t.next++
	}
	t.pending -= datagrams
	return datagrams
}

// split takes the trains that are left apart into single datagrams, for a
// kernel that refuses trains.
func (t *trains) split() {
	t.joined = false
	var single []train
	for _, l := range t.list[t.next:] {
		for at := 0; at < l.size; at += l.segment {
			n := min(l.segment, l.size-at)
			single = append(single, train{to: l.to, tos: l.tos, from: l.from + at, size: n, segment: n, segments: 1})
		}
	}
	t.list, t.next = append(t.list[:0], single...), 0
}
