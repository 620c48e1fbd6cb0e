package bundle

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Config is one node's part in one flow. Sizes are in bytes.
type Config struct {
	// Self is this node's id; Prev and Next are those of its neighbours on the
	// flow's path, the null endpoint where there is none: the source has no
	// previous and the destination no next hop.
	Self, Prev, Next EID
	// Source and Destination are the flow's endpoints. Other bundles are refused.
	Source, Destination EID

	// SegmentSize is the most data of a segment, sent or accepted (Segment MRU).
	SegmentSize int
	// Limit bounds what a relay stores of the flow; a bundle that is longer is
	// not accepted (Transfer MRU).
	Limit vtime.Bytes
	// Disk says that bundles are stored on disk before they are acknowledged: the
	// driver is told to, by Op.
	Disk bool

	// Transfers and Unacked bound what is sent and not yet acknowledged: a new
	// transfer begins while there are fewer of them and it fits, or when there
	// is none.
	Transfers int
	Unacked   vtime.Bytes

	// Keepalive is the interval that this node asks for, in whole seconds; after
	// twice the negotiated interval without a sign of the peer the session ends.
	// 0: none.
	Keepalive vtime.Duration
	// SetupWithin bounds the exchange of contact headers and SESS_INITs, and the
	// time that an ending session is given to end.
	SetupWithin vtime.Duration
	// RetryFirst and RetryMost bound the pause after a refused transfer, which
	// doubles.
	RetryFirst, RetryMost vtime.Duration

	// Lifetime and HopLimit are those of the source's bundles.
	Lifetime vtime.Duration
	HopLimit int
	// Epoch is the run's moment 0 as DTN time, in milliseconds since the
	// beginning of 2000. With NoClock a source writes no time: its bundles have
	// an age instead (RFC 9171 §4.4.2).
	Epoch   uint64
	NoClock bool
}

// DefaultConfig returns the parameters of DESIGN.md without names.
func DefaultConfig() Config {
	return Config{
		SegmentSize: 64 << 10,
		Limit:       64 * vtime.MiB,
		Transfers:   64,
		Unacked:     4 * vtime.MiB,
		Keepalive:   10 * vtime.Second,
		SetupWithin: 30 * vtime.Second,
		RetryFirst:  1 * vtime.Second,
		RetryMost:   30 * vtime.Second,
		Lifetime:    24 * vtime.Hour,
		HopLimit:    64,
	}
}

// minSegment is the smallest Segment MRU that is accepted of a peer: less would
// make it all headers (RFC 9174 §8.9).
const minSegment = 1 << 10

// Validate returns what is wrong with the configuration.
func (c *Config) Validate() error {
	for _, f := range []struct {
		name      string
		v, lo, hi int64
	}{
		{"SegmentSize", int64(c.SegmentSize), minSegment, 16 << 20},
		{"Limit", int64(c.Limit), 16 << 10, 1 << 40},
		{"Transfers", int64(c.Transfers), 1, 1 << 16},
		{"Unacked", int64(c.Unacked), 0, 1 << 40},
		{"Keepalive", int64(c.Keepalive), 0, 65535 * int64(vtime.Second)},
		{"SetupWithin", int64(c.SetupWithin), int64(vtime.Second), int64(vtime.Minute)},
		{"RetryFirst", int64(c.RetryFirst), int64(vtime.Millisecond), int64(c.RetryMost)},
		{"Lifetime", int64(c.Lifetime), int64(vtime.Millisecond), 1 << 62},
		{"HopLimit", int64(c.HopLimit), 1, 255},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("bundle: %s is %d, want %d to %d", f.name, f.v, f.lo, f.hi)
		}
	}
	switch {
	case c.Keepalive%vtime.Second != 0:
		return fmt.Errorf("bundle: Keepalive is %v: it is negotiated in whole seconds", c.Keepalive)
	case c.Self == EID{} || c.Source == EID{} || c.Destination == EID{}:
		return fmt.Errorf("bundle: node %v in the flow from %v to %v: the null endpoint is none of them", c.Self, c.Source, c.Destination)
	case c.Prev == EID{} && c.Next == EID{}:
		return fmt.Errorf("bundle: node %v has no neighbour", c.Self)
	}
	return nil
}

// isSource and isDestination tell the ends of the path from relays.
func (c *Config) isSource() bool      { return c.Prev == EID{} }
func (c *Config) isDestination() bool { return c.Next == EID{} }

// App is the application at the ends of the flow.
type App interface {
	// Next returns the payload of the source's next bundle, nil while none is
	// ready.
	Next(now vtime.Time) Content
	// Finished says that Next will never return anything again.
	Finished() bool
	// Deliver takes a bundle at its destination. No bundle comes twice; order is
	// not promised.
	Deliver(now vtime.Time, b *Bundle)
}

// Stats counts what has happened at a node.
type Stats struct {
	Created      uint64 // source: bundles made
	Received     uint64 // bundles that came whole and were new
	Forwarded    uint64 // bundles that the next hop has acknowledged
	Delivered    uint64 // destination
	Duplicates   uint64 // bundles that came again, or whose transfer was refused as complete
	Expired      uint64 // deleted because their lifetime was over
	HopLimited   uint64 // deleted because of their hop limit
	Dropped      uint64 // deleted because the next hop will not have them
	Restored     uint64 // found on disk at the start
	RefusedIn    uint64 // transfers that this node refused
	RefusedOut   uint64 // transfers that the next hop refused
	Sessions     uint64 // sessions that were established
	IdleTimeouts uint64 // sessions that ended because the peer fell silent
	Resent       uint64 // transfers that began anew after a session had ended
}

// Add adds another node's counts, or those of the same before it was restarted.
func (s *Stats) Add(o Stats) {
	for i, p := range s.fields() {
		*p += *o.fields()[i]
	}
}

func (s *Stats) fields() []*uint64 {
	return []*uint64{&s.Created, &s.Received, &s.Forwarded, &s.Delivered, &s.Duplicates, &s.Expired, &s.HopLimited, &s.Dropped,
		&s.Restored, &s.RefusedIn, &s.RefusedOut, &s.Sessions, &s.IdleTimeouts, &s.Resent}
}

// Each calls f for every count, in a fixed order, with a name for results.
func (s *Stats) Each(f func(name string, v uint64)) {
	names := [...]string{"created", "received", "forwarded", "delivered", "duplicates", "expired", "hop_limited", "dropped",
		"restored", "refused_in", "refused_out", "sessions", "idle_timeouts", "resent"}
	for i, p := range s.fields() {
		f("bundle_"+names[i], *p)
	}
}
