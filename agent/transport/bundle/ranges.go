package bundle

import "slices"

// ranges is a set of sequence numbers: which bundles have been here.
type ranges struct{ list []span }

// span holds the numbers from first to last, both included.
type span struct{ first, last uint64 }

// maxRanges bounds the set: bundles come nearly in order, so that an honest
// source's fill a few spans.
const maxRanges = 4096

// find returns the index of the first span that ends at or after v.
func (r *ranges) find(v uint64) int {
	i, _ := slices.BinarySearchFunc(r.list, v, func(s span, v uint64) int {
		if s.last < v {
			return -1
		}
		return 1
	})
	return i
}

func (r *ranges) has(v uint64) bool {
	i := r.find(v)
	return i < len(r.list) && r.list[i].first <= v
}

// full says that v would need a span of its own and there may be none.
func (r *ranges) full(v uint64) bool {
	if len(r.list) < maxRanges {
		return false
	}
	i := r.find(v)
	joins := i < len(r.list) && r.list[i].first <= v+1 && v < ^uint64(0) || i > 0 && r.list[i-1].last == v-1
	return !joins
}

func (r *ranges) add(v uint64) {
	if r.has(v) {
		return
	}
	i := r.find(v)
	before := i > 0 && r.list[i-1].last == v-1
	after := i < len(r.list) && r.list[i].first == v+1 && v+1 != 0
	switch {
	case before && after:
		r.list[i-1].last = r.list[i].last
		r.list = slices.Delete(r.list, i, i+1)
	case before:
		r.list[i-1].last = v
	case after:
		r.list[i].first = v
	default:
		r.list = slices.Insert(r.list, i, span{v, v})
	}
}
