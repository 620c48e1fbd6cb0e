package pipe

import (
	"encoding/json"
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// MarshalJSON writes the trace as the times of its opportunities in
// milliseconds, the numbers of a Mahimahi file.
func (t *Trace) MarshalJSON() ([]byte, error) {
	ms := make([]int64, len(t.times))
	for i, at := range t.times {
		ms[i] = int64(at) / int64(vtime.Millisecond)
	}
	return json.Marshal(ms)
}

// UnmarshalJSON inverts MarshalJSON.
func (t *Trace) UnmarshalJSON(b []byte) error {
	var ms []int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	read, err := NewTrace(ms)
	if err != nil {
		return err
	}
	*t = *read
	return nil
}
