package backend

import (
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// A call that is not heard has the worst rating, and none only where it was too
// short to be heard.
func TestSilentCalls(t *testing.T) {
	const second = 1_000_000
	call := func(length int64, delay store.Opt[int64]) (m []store.Message) {
		for at := int64(0); at < length; at += 20_000 {
			m = append(m, store.Message{ReadyUs: at, Size: 32, DelayUs: delay})
		}
		return m
	}
	late := call(2500*second/1000, store.Opt[int64]{})
	late[0].DelayUs = store.Some(int64(2_200_000)) // the player waits as long for all others
	for name, c := range map[string]struct {
		messages  []store.Message
		from, end int64
		none      bool
		least     float64
	}{
		"heard":                       {call(2*second, store.Some(int64(5000))), 0, 2 * second, false, 70},
		"all lost":                    {call(2*second, store.Opt[int64]{}), 0, 2 * second, false, 0},
		"one packet, after 2 s":       {late, second / 2, 2500 * second / 1000, false, 0},
		"over before it can be heard": {call(second/50, store.Some(int64(5000))), 0, second / 50, true, 0},
		"no packet":                   {nil, 0, second, true, 0},
	} {
		row := store.Flow{Counters: map[string]int64{}}
		judgeVoice(&row, "g729", c.messages, c.from, c.end)
		if row.RFactor.OK == c.none || row.RFactor.V < c.least || c.least == 0 && row.RFactor.V != 0 {
			t.Errorf("%s: %+v", name, row.RFactor)
		}
	}
}
