package proto

import "github.com/hopbed/hopbed/netem/vtime"

// Measured returns the part [from, to) of the measured interval [warmup, end) in
// which the flow is meant to run: what it delivers then, over that time, is its
// goodput. It is empty (from = to) for a flow that begins after the interval or
// stops before it.
func (f *Flow) Measured(warmup, end vtime.Time) (from, to vtime.Time) {
	from, to = vtime.Min(vtime.Max(warmup, f.Start), end), end
	if f.Stop > 0 {
		to = vtime.Min(f.Stop, end)
	}
	return from, vtime.Max(from, to)
}
