package etx

import (
	"fmt"
	"math"
	"slices"
)

// Survey is what broadcast probes gave (De Couto et al., MobiCom 2003, section
// 3): every node that takes part sends the same number of them, and the others
// count which arrived.
type Survey struct {
	// Nodes is the number of nodes of the network, Probes that of the probes of
	// each that took part.
	Nodes, Probes int
	// Mute are nodes that took no part: they have no radio.
	Mute []int
	// Heard has what arrived, by From, then To; a direction that is left out is
	// one in which nothing arrived.
	Heard []Heard
}

// Heard counts the probes of one node that arrived at another.
type Heard struct {
	From, To int
	Received int
	// Lost are the numbers of the probes that did not arrive, ascending from 0; as
	// many as there are, or nil where only the counts are known.
	Lost []int
}

// Hysteresis is the link hysteresis of RFC 3626, section 14: the quality of a link
// is smoothed over its probes, and the link is established above High and given up
// below Low only. All are shares from 0 to 1.
type Hysteresis struct {
	Scaling   float64 // HYST_SCALING, 0.5 there: the weight of the newest probe
	High, Low float64 // HYST_THRESHOLD_HIGH, 0.8, and HYST_THRESHOLD_LOW, 0.3
}

// Rating is how a survey is turned into links.
type Rating struct {
	// Window is the number of a node's latest probes that count, as olsrd's
	// LinkQualityWinSize; 0 = all.
	Window int
	// Hysteresis, if not nil, decides which directions are established.
	Hysteresis *Hysteresis
}

// Rated is one direction of a link as measured.
type Rated struct {
	From, To         int
	Window, Received int
	// Delivery is Received/Window; Low and High bound it with 95 % confidence
	// (Wilson).
	Delivery, Low, High float64
	// Established: hysteresis, if there is any, lets the direction be used.
	Established bool
}

// Check says what is wrong with a survey; nil if it can be rated.
func (s *Survey) Check() error {
	if s.Nodes < 1 || s.Probes < 1 {
		return fmt.Errorf("a survey of %d nodes with %d probes each", s.Nodes, s.Probes)
	}
	seen := map[[2]int]bool{}
	for _, h := range s.Heard {
		at := [2]int{h.From, h.To}
		switch {
		case h.From < 0 || h.From >= s.Nodes || h.To < 0 || h.To >= s.Nodes || h.From == h.To:
			return fmt.Errorf("probes of node %d at node %d: the survey has the nodes 0 to %d", h.From, h.To, s.Nodes-1)
		case slices.Contains(s.Mute, h.From) || slices.Contains(s.Mute, h.To):
			return fmt.Errorf("probes of node %d at node %d: one of them took no part", h.From, h.To)
		case seen[at]:
			return fmt.Errorf("probes of node %d at node %d are listed twice", h.From, h.To)
		case h.Received < 0 || h.Received > s.Probes || h.Lost != nil && h.Received+len(h.Lost) != s.Probes:
			return fmt.Errorf("probes of node %d at node %d: %d received and %d lost of %d", h.From, h.To, h.Received, len(h.Lost), s.Probes)
		}
		last := -1
		for _, n := range h.Lost {
			if n <= last || n >= s.Probes {
				return fmt.Errorf("probes of node %d at node %d: number %d after %d of %d", h.From, h.To, n, last, s.Probes)
			}
			last = n
		}
		seen[at] = true
	}
	return nil
}

// Rate returns every direction in which a probe arrived, by From, then To. It
// needs the numbers of the lost probes for a window that is shorter than the
// survey, and for hysteresis.
func (s *Survey) Rate(o Rating) ([]Rated, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	window := s.Probes
	if o.Window > 0 {
		window = min(o.Window, s.Probes)
	}
	var out []Rated
	for _, h := range s.Heard {
		if h.Received == 0 {
			continue
		}
		r := Rated{From: h.From, To: h.To, Window: window, Received: h.Received, Established: true}
		if window < s.Probes || o.Hysteresis != nil {
			if h.Lost == nil && h.Received < s.Probes {
				return nil, fmt.Errorf("probes of node %d at node %d: which were lost is not known", h.From, h.To)
			}
			// Those before the window are no part of it.
			before, _ := slices.BinarySearch(h.Lost, s.Probes-window)
			r.Received = window - (len(h.Lost) - before)
			if o.Hysteresis != nil {
				r.Established = o.Hysteresis.established(s.Probes, h.Lost)
			}
		}
		r.Delivery = float64(r.Received) / float64(window)
		r.Low, r.High = Wilson(r.Received, window)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rated) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return out, nil
}

// established follows RFC 3626, 14.2 and 14.3, over the probes of one node: the
// link is pending at first.
func (h *Hysteresis) established(probes int, lost []int) bool {
	quality, up := 0.0, false
	for n := range probes {
		quality = float64((1 - h.Scaling) * quality)
		if len(lost) > 0 && lost[0] == n {
			lost = lost[1:]
		} else {
			quality += h.Scaling
		}
		switch {
		case quality > h.High:
			up = true
		case quality < h.Low:
			up = false
		}
	}
	return up
}

// z95 is the 97.5 % quantile of the standard normal distribution.
const z95 = 1.959963984540054

// Wilson returns the score interval of a share with 95 % confidence (Wilson 1927;
// Brown, Cai, DasGupta, Statistical Science 2001): it holds near 0 and 1 and for
// few trials, where the usual one is too narrow.
func Wilson(received, sent int) (low, high float64) {
	if sent < 1 {
		return 0, 1
	}
	n := float64(sent)
	p := float64(received) / n
	z2 := float64(z95 * z95)
	scale := 1 / (1 + z2/n)
	centre := float64(scale * (p + z2/(2*n)))
	half := float64(scale * z95 * math.Sqrt(float64(p*(1-p))/n+z2/(4*n*n)))
	low, high = math.Max(0, centre-half), math.Min(1, centre+half)
	if received == 0 {
		low = 0
	}
	if received == sent {
		high = 1
	}
	return low, high
}

// Pair is a link in both directions.
type Pair struct {
	There, Back Rated // from From to To, and back; the zero Rated where nothing arrived
	// ETX is 1/(There·Back), +Inf for a link of one direction. Low and High bound
	// it: they are of the ends of the two intervals, which hold with at least 90 %
	// confidence together.
	ETX, Low, High float64
	// Usable: both directions are established and have at least the delivery asked
	// for.
	Usable bool
}

// OneWay tells that probes arrived in one direction only.
func (p *Pair) OneWay() bool { return (p.There.Received == 0) != (p.Back.Received == 0) }

// Asymmetric tells that the two directions differ by more than chance: their
// intervals do not overlap.
func (p *Pair) Asymmetric() bool { return p.There.Low > p.Back.High || p.Back.Low > p.There.High }

// Pairs joins the directions of a rating into links, each once, from the smaller
// node to the larger. least is the delivery that a link needs in both directions
// to be used.
func Pairs(rated []Rated, least float64) []Pair {
	at := map[[2]int]*Rated{}
	for i := range rated {
		at[[2]int{rated[i].From, rated[i].To}] = &rated[i]
	}
	var out []Pair
	for i := range rated {
		r := rated[i]
		back := at[[2]int{r.To, r.From}]
		if r.From > r.To && back != nil {
			continue // it is there
		}
		none := Rated{From: r.To, To: r.From, Window: r.Window}
		none.Low, none.High = Wilson(0, r.Window)
		if back == nil {
			back = &none
		}
		p := Pair{There: r, Back: *back}
		if r.From > r.To {
			p.There, p.Back = p.Back, p.There
		}
		p.ETX = Link(p.There.Delivery, p.Back.Delivery)
		p.Low, p.High = Link(p.There.High, p.Back.High), Link(p.There.Low, p.Back.Low)
		p.Usable = p.There.Established && p.Back.Established && p.There.Delivery >= least && p.Back.Delivery >= least && p.ETX < math.Inf(1)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pair) int {
		if a.There.From != b.There.From {
			return a.There.From - b.There.From
		}
		return a.There.To - b.There.To
	})
	return out
}
