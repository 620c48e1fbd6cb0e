package wifi

import (
	"fmt"
	"testing"
)

// TestContendersFireAsEvents: the traces do not depend on how many access timers are
// in the list, none of them, some, or all, in one cell and in a field, with nodes
// that go down meanwhile.
func TestContendersFireAsEvents(t *testing.T) {
	mac := DefaultMAC(StandardB)
	mac.Queues[BK].TXOP, mac.Queues[BK].Ack = 8160*us, AckNone
	r := DefaultRadio()
	r.Shadowing = 6
	field := mustChannel(t, 2, r, mac, scatter(90, 400))
	for name, ch := range map[string]*Channel{"cell": cell(t, 80), "field": field} {
		run := func(most int) string {
			l := newLab(t, 9, ch, mac)
			l.m.contenders.most = most
			for i := 1; i < ch.N(); i++ {
				best := 0
				for j := range ch.N() {
					if i != j && ch.SNR(i, j) > ch.SNR(i, best) {
						best = j
					}
				}
				l.saturate(i, best, AC(i%4), 700, 2)
			}
			longest := 0
			for i := range 60 {
				l.run(20 * ms)
				l.m.SetNodeUp(i%5, i%2 == 0)
				longest = max(longest, len(l.m.contenders.list))
			}
			if longest > most || most == 1000 && name == "cell" && longest <= maxContenders {
				t.Errorf("%s: at most %d in the list, want some more than %d, but no more than %d", name, longest, maxContenders, most)
			}
			return fmt.Sprintf("%x after %d events", l.eng.TraceHash(), l.eng.Fired())
		}
		want := run(0)
		for _, most := range []int{1, 7, maxContenders, 1000} {
			if got := run(most); got != want {
				t.Errorf("%s: with a list of %d the trace is %s, want %s", name, most, got, want)
			}
		}
	}
}
