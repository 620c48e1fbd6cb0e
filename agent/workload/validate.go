package workload

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The bounds of what a Spec may ask for.
const (
	// MaxSize bounds a message, and the mean size of random ones.
	MaxSize = vtime.GiB
	// MinInterval and MaxInterval bound the mean distance of messages: every
	// message has a row in the results.
	MinInterval = 100 * vtime.Microsecond
	MaxInterval = 24 * vtime.Hour
	// MaxTransfers bounds a trace, which travels in the order to an agent.
	MaxTransfers = 50_000
	// MaxOffset bounds the moments of a trace.
	MaxOffset = 1000 * 24 * vtime.Hour

	// Of a web workload.
	MaxObjects     = 10_000_000
	MaxZipf        = 10
	MaxPageObjects = 100 // mean
	MaxThink       = 24 * vtime.Hour
	MinMean        = 64 * vtime.Byte // of the objects; below, whole bytes are too coarse
	MaxRequest     = vtime.MiB
)

// Validate reports what is wrong with the spec: a field without which its kind
// has no meaning, one out of its bounds, or one of another kind.
func (s Spec) Validate() error {
	own := []string{}
	var err error
	switch s.Kind {
	case Continual:
		if s.Size != 0 {
			return fmt.Errorf("workload continual has the size %v: a continual source has none; use kind sized", s.Size)
		}
	case Sized:
		own = []string{"size"}
		if s.Size <= 0 {
			return fmt.Errorf("workload sized has the size %v: it must be positive", s.Size)
		}
	case Poisson:
		own, err = []string{"size", "seed", "interval_ns", "sizes"}, s.validatePoisson()
	case Trace:
		own, err = []string{"transfers"}, s.validateTrace()
	case VoIP:
		own = []string{"seed", "codec"}
		if _, ok := CodecOf(s.Codec); !ok {
			var names []string
			for _, c := range codecs {
				names = append(names, c.Name)
			}
			return fmt.Errorf("workload voip has the codec %q, want one of %v", s.Codec, names)
		}
	case Web:
		own, err = []string{"seed", "web", "role"}, s.validateWeb()
	default:
		return fmt.Errorf("workload kind %q is unknown, want one of %v", s.Kind, Kinds())
	}
	if err != nil {
		return fmt.Errorf("workload %s: %w", s.Kind, err)
	}
	return s.refuseForeign(own)
}

// refuseForeign reports a field that is set and that the kind does not have. A
// seed without draws is allowed: the controller gives one to every flow.
func (s Spec) refuseForeign(own []string) error {
next:
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"size", s.Size != 0}, {"interval_ns", s.Interval != 0}, {"sizes", s.Sizes != ""}, {"transfers", len(s.Transfers) > 0},
		{"codec", s.Codec != ""}, {"web", s.Web != nil}, {"role", s.Role != ""},
	} {
		for _, name := range own {
			if name == f.name {
				continue next
			}
		}
		if f.set {
			return fmt.Errorf("workload %s has the field %s, which it does not know: leave it out", s.Kind, f.name)
		}
	}
	return nil
}

// within reports a value outside [lo, hi].
func within[T interface {
	~int | ~int64
	fmt.Stringer
}](what string, v, lo, hi T) error {
	if v < lo || v > hi {
		return fmt.Errorf("%s is %v, want %v to %v", what, v, lo, hi)
	}
	return nil
}

// number is a count, for within.
type number int

// String writes it in decimal digits.
func (n number) String() string { return fmt.Sprint(int(n)) }

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) validatePoisson() error {
	switch s.Sizes {
	case "", SizesFixed, SizesExponential, SizesPareto:
	default:
		return fmt.Errorf("the distribution of sizes is %q, want %s, %s or %s", s.Sizes, SizesFixed, SizesExponential, SizesPareto)
	}
	return first(within("the size", s.Size, 1, MaxSize), within("the mean interval", s.Interval, MinInterval, MaxInterval))
}

func (s Spec) validateTrace() error {
	if err := within("the number of transfers", number(len(s.Transfers)), 1, MaxTransfers); err != nil {
		return err
	}
	last := vtime.Duration(0)
	for i, t := range s.Transfers {
		if err := first(within("its moment", t.At, 0, MaxOffset), within("its size", t.Size, 1, MaxSize)); err != nil {
			return fmt.Errorf("transfer %d: %w", i, err)
		}
		if t.At < last {
			return fmt.Errorf("transfer %d is at %v, before the one that precedes it (%v): order them by time", i, t.At, last)
		}
		last = t.At
	}
	return nil
}

func (s Spec) validateWeb() error {
	if s.Role != Requests && s.Role != Responses {
		return fmt.Errorf("the flow's role is %q, want %s or %s", s.Role, Responses, Requests)
	}
	w := s.Web
	if w == nil {
		return fmt.Errorf("the description of the pages (web) is missing")
	}
	if !(w.Zipf >= 0 && w.Zipf <= MaxZipf) {
		return fmt.Errorf("the exponent of the popularity is %v, want 0 to %v", w.Zipf, MaxZipf)
	}
	if !(w.PageObjects >= 1 && w.PageObjects <= MaxPageObjects) {
		return fmt.Errorf("the mean number of objects of a page is %v, want 1 to %v", w.PageObjects, MaxPageObjects)
	}
	return first(within("the number of objects", number(w.Objects), 1, MaxObjects),
		within("the mean size of an object", w.MeanSize, MinMean, MaxSize),
		within("the largest size of an object", w.MaxSize, w.MeanSize, MaxSize),
		within("the mean pause", w.Think, 0, MaxThink),
		within("the size of a request", w.Request, 1, MaxRequest))
}
