package etx

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestWilson: the ends of the interval are the shares from which the observed one
// is 1.96 standard errors away (Wilson 1927, equation 2), which is what defines it.
func TestWilson(t *testing.T) {
	for _, c := range [][2]int{{81, 263}, {1, 100}, {99, 100}, {50, 100}, {1, 1}, {0, 10}, {10, 10}, {3, 7}} {
		k, n := float64(c[0]), float64(c[1])
		low, high := Wilson(c[0], c[1])
		for _, end := range []float64{low, high} {
			if end == 0 || end == 1 {
				continue
			}
			if z := math.Abs(k/n-end) / math.Sqrt(end*(1-end)/n); math.Abs(z-1.959964) > 1e-5 {
				t.Errorf("%d of %d: the end %v is %v standard errors away", c[0], c[1], end, z)
			}
		}
		if low > k/n || high < k/n || (low == 0) != (k == 0) || (high == 1) != (k == n) {
			t.Errorf("%d of %d: %v to %v", c[0], c[1], low, high)
		}
	}
	if low, high := Wilson(0, 0); low != 0 || high != 1 {
		t.Errorf("nothing sent: %v to %v", low, high)
	}
}

func lost(n ...int) []int { return append([]int{}, n...) }

// TestTheWindowIsOfTheLatestProbes, as olsrd's LinkQualityWinSize.
func TestTheWindowIsOfTheLatestProbes(t *testing.T) {
	s := Survey{Nodes: 2, Probes: 10, Heard: []Heard{{0, 1, 6, lost(0, 1, 2, 9)}, {1, 0, 10, lost()}}}
	for window, want := range map[int]int{0: 6, 10: 6, 99: 6, 7: 6, 5: 4, 1: 0} {
		r, err := s.Rate(Rating{Window: window})
		if err != nil || len(r) != 2 || r[0].Received != want || r[0].Delivery != float64(want)/float64(r[0].Window) {
			t.Errorf("window %d: %+v, %v; want %d received", window, r, err, want)
		}
	}
	s.Heard[0].Lost = nil // the counts are enough for the whole
	if r, err := s.Rate(Rating{}); err != nil || r[0].Received != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Rate(Rating{Window: 5}); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a window of probes that are not known: %v", err)
	}
}

// RFC 3626, 14.2: with scaling 0.5, high 0.8 and low 0.3 a link is established
// after three probes (0.5, 0.75, 0.875), survives one loss (0.4375) and is given up
// after two (0.21875).
func TestHysteresis(t *testing.T) {
	h := &Hysteresis{Scaling: 0.5, High: 0.8, Low: 0.3}
	for name, c := range map[string]struct {
		probes int
		lost   []int
		want   bool
	}{
		"two probes":            {2, nil, false},
		"three probes":          {3, nil, true},
		"one loss":              {4, lost(3), true},
		"two losses":            {5, lost(3, 4), false},
		"two losses, and three": {8, lost(3, 4), true},
		"every second":          {100, everySecond(100), false},
		"every fourth":          {100, everyFourth(100), true},
	} {
		if got := h.established(c.probes, c.lost); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := Survey{Nodes: 2, Probes: 5, Heard: []Heard{{0, 1, 3, lost(3, 4)}, {1, 0, 5, lost()}}}
	r, err := s.Rate(Rating{Hysteresis: h})
	if err != nil || r[0].Established || !r[1].Established {
		t.Errorf("%+v, %v", r, err)
	}
	if p := Pairs(r, 0.1); len(p) != 1 || p[0].Usable || p[0].ETX != 1/0.6 {
		t.Errorf("%+v", p)
	}
}

func everySecond(n int) (out []int) {
	for i := 0; i < n; i += 2 {
		out = append(out, i)
	}
	return out
}

func everyFourth(n int) (out []int) {
	for i := 3; i < n; i += 4 {
		out = append(out, i)
	}
	return out
}

func TestPairs(t *testing.T) {
	s := Survey{Nodes: 5, Probes: 100, Mute: []int{4}, Heard: []Heard{
		{0, 1, 90, nil}, {1, 0, 80, nil}, // a link
		{2, 0, 50, nil},                 // one way, towards the smaller node
		{1, 2, 99, nil}, {2, 1, 5, nil}, // too weak back
	}}
	rated, err := s.Rate(Rating{})
	if err != nil {
		t.Fatal(err)
	}
	p := Pairs(rated, 0.1)
	if len(p) != 3 {
		t.Fatalf("%d pairs: %+v", len(p), p)
	}
	link, one, weak := p[0], p[1], p[2]
	if !link.Usable || link.OneWay() || link.Asymmetric() || math.Abs(link.ETX-1/0.72) > 1e-12 || !(link.Low < link.ETX && link.ETX < link.High) {
		t.Errorf("link %+v", link)
	}
	if one.Usable || !one.OneWay() || one.There.From != 0 || one.There.To != 2 || one.There.Received != 0 || one.There.Window != 100 || one.Back.Received != 50 || !math.IsInf(one.ETX, 1) || !math.IsInf(one.High, 1) || math.IsInf(one.Low, 1) {
		t.Errorf("one way %+v", one)
	}
	if weak.Usable || weak.OneWay() || !weak.Asymmetric() {
		t.Errorf("weak %+v", weak)
	}
	if Pairs(rated, 0.05)[2].Usable != true {
		t.Error("5 % is not usable where 5 % is asked for")
	}
}

func TestSurveysThatCannotBe(t *testing.T) {
	for name, s := range map[string]Survey{
		"no probes":        {Nodes: 2},
		"no such node":     {Nodes: 2, Probes: 3, Heard: []Heard{{0, 2, 1, nil}}},
		"its own":          {Nodes: 2, Probes: 3, Heard: []Heard{{1, 1, 1, nil}}},
		"more than sent":   {Nodes: 2, Probes: 3, Heard: []Heard{{0, 1, 4, nil}}},
		"twice":            {Nodes: 2, Probes: 3, Heard: []Heard{{0, 1, 1, nil}, {0, 1, 1, nil}}},
		"of a mute node":   {Nodes: 2, Probes: 3, Mute: []int{0}, Heard: []Heard{{0, 1, 1, nil}}},
		"does not add up":  {Nodes: 2, Probes: 3, Heard: []Heard{{0, 1, 1, lost(1)}}},
		"numbers too high": {Nodes: 2, Probes: 3, Heard: []Heard{{0, 1, 2, lost(3)}}},
		"number twice":     {Nodes: 2, Probes: 3, Heard: []Heard{{0, 1, 1, lost(1, 1)}}},
	} {
		if _, err := s.Rate(Rating{}); err == nil {
			t.Errorf("%s was rated", name)
		}
	}
	s := Survey{Nodes: 3, Probes: 3, Heard: []Heard{{2, 0, 3, lost()}, {0, 2, 1, lost(0, 1)}, {0, 1, 0, lost(0, 1, 2)}}}
	r, err := s.Rate(Rating{})
	if err != nil || len(r) != 2 || r[0].To != 2 || r[1].From != 2 || !reflect.DeepEqual([2]int{r[0].Received, r[1].Received}, [2]int{1, 3}) {
		t.Errorf("%+v, %v", r, err)
	}
}
