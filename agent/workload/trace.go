package workload

import "github.com/hopbed/hopbed/netem/vtime"

// trace is the list of Spec.Transfers, from the flow's start on.
type trace struct {
	left        []Transfer
	start, stop vtime.Time
}

func (t *trace) next() (message, bool) {
	if len(t.left) == 0 {
		return message{}, false
	}
	first := t.left[0]
	at := t.start.Add(first.At)
	if at >= t.stop {
		return message{}, false
	}
	t.left = t.left[1:]
	return message{at, first.Size}, true
}
