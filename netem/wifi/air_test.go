package wifi

import (
	"math"
	"testing"
)

// TestSumsAndBounds: after every event the sums of each receiver are those of the
// signals on the air, carrier sense is what they say, and the bounds at which a signal
// gives the receiver something to do are those that follow from its state; with more
// hearers than one batch has, with nodes and links that are switched meanwhile, and in
// every model of the channel.
func TestSumsAndBounds(t *testing.T) {
	mac := DefaultMAC(StandardB)
	mac.Queues[BK].TXOP, mac.Queues[BK].Ack = 8160*us, AckNone
	r := DefaultRadio()
	r.Shadowing = 6
	yes := [][]float64{{0, 1, 0, 0.5}, {1, 0, 1, 0}, {0, 1, 0, 1}, {0.5, 0, 1, 0}}
	matrix, err := NewMatrixChannel(yes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, ch := range map[string]*Channel{
		"cell": cell(t, 80), "field": mustChannel(t, 2, r, mac, scatter(90, 400)),
		"disk": mustChannel(t, 2, DiskRadio(100, 220), mac, scatter(40, 400)), "matrix": matrix,
	} {
		l := newLab(t, 9, ch, mac)
		n := ch.N()
		for i := range n {
			if to := (i + 1) % n; i%3 != 2 {
				l.saturate(i, to, AC(i%4), 700, 2)
			}
		}
		locked := 0
		for k := range 20_000 {
			if k%500 == 0 {
				l.m.SetNodeUp(k/500%n, k/500%4 == 0)
				if err := l.m.SetLinkUp(k/500%n, (k/500+1)%n, k/500%3 == 0); err != nil {
					t.Fatal(err)
				}
			}
			l.eng.Step()
			locked += checkReceivers(t, name, l.m)
			if t.Failed() {
				return
			}
		}
		if locked == 0 {
			t.Errorf("%s: no receiver was ever locked", name)
		}
	}
}

// checkReceivers returns the number of those that are locked.
func checkReceivers(t *testing.T, name string, m *Medium) (locked int) {
	energy, sensed := make([]int64, m.ch.n), make([]int64, m.ch.n)
	for i := range m.stations {
		s := &m.stations[i]
		if !s.transmitting {
			continue
		}
		for k := range m.ch.links[i] {
			h := &m.hearers[i][s.sig.shape.kind][k]
			if h.receiver != &m.void {
				energy[h.id] += h.power
				sensed[h.id] += h.sense
			}
		}
	}
	for i := range m.receivers {
		r := &m.receivers[i]
		want := *r
		m.setBounds(&want)
		switch {
		case r.energy != energy[i] || r.sensed != sensed[i]:
			t.Errorf("%s, %v: receiver %d has the sums %d and %d, want %d and %d", name, m.eng.Now(), i, r.energy, r.sensed, energy[i], sensed[i])
		case r.busy != m.hears(r):
			t.Errorf("%s, %v: receiver %d: carrier sense is %v", name, m.eng.Now(), i, r.busy)
		case r.high != want.high || r.low != want.low || r.least != want.least:
			t.Errorf("%s, %v: receiver %d has the bounds %d, %d, %d, want %d, %d, %d", name, m.eng.Now(), i, r.high, r.low, r.least, want.high, want.low, want.least)
		case !r.locked() && (r.limit != math.MaxInt64 || r.power != 0):
			t.Errorf("%s, %v: receiver %d is idle, but has power %d and limit %d", name, m.eng.Now(), i, r.power, r.limit)
		}
		if r.locked() {
			locked++
		}
	}
	return locked
}
