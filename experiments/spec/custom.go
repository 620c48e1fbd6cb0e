package spec

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The types whose textual form is more than a unit: each decodes itself.

// maxCoordinate bounds positions: a wireless network is not larger.
const maxCoordinate vtime.Metres = 1e6

// pair2 reads a list of two distances.
func (d *decoder) pair2(n *node, at, form string, low vtime.Metres) (a, b vtime.Metres) {
	if n.kind != sequence || len(n.items) != 2 {
		d.bad(n, at, "not a list of two distances", form)
		return
	}
	var out [2]vtime.Metres
	for i, it := range n.items {
		d.value(it, fmt.Sprintf("%s[%d]", at, i), reflect.ValueOf(&out[i]).Elem(), field{})
		if out[i] < low || out[i] > maxCoordinate {
			d.bad(it, at, "out of range", fmt.Sprintf("%v to %v", low, maxCoordinate))
		}
	}
	return out[0], out[1]
}

func (a *Area) decodeNode(d *decoder, n *node, at string) {
	a.Width, a.Height = d.pair2(n, at, "[width, height], for example [120m, 80m]", 0)
}

func (p *Position) decodeNode(d *decoder, n *node, at string) {
	p.X, p.Y = d.pair2(n, at, "[x, y], for example [10m, 0m]", -maxCoordinate)
}

func (p *Pairs) decodeNode(d *decoder, n *node, at string) {
	switch {
	case n.kind == scalar && n.text == "random":
		*p = Pairs{}
	case n.kind == sequence:
		d.list(n, at, reflect.ValueOf(&p.Listed).Elem(), field{})
	default:
		d.bad(n, at, "not a choice of pairs", "random, or a list such as [{src: n01, dst: n05}]")
	}
}

func (t *Transport) decodeNode(d *decoder, n *node, at string) {
	if n.kind != scalar || n.null {
		d.bad(n, at, "is "+describe(n), transportHelp)
		return
	}
	*t = Transport(n.text)
	if t.family() == nil {
		d.problem(n, at, Problem{Value: quote(n.text), What: "unknown transport", Allowed: transportHelp, Hint: suggestTransport(n.text)})
	}
}

func suggestTransport(s string) string {
	if slices.Contains(congestionControls, s) {
		return strconv.Quote("tcp/" + s)
	}
	if t := Transport(s + "/cubic"); t.family() != nil {
		return strconv.Quote(s + "/cubic")
	}
	return suggest(s, TransportNames())
}

var (
	hopCompare = regexp.MustCompile(`^(>=|<=|>|<|=)? *([0-9]{1,4})$`)
	hopRange   = regexp.MustCompile(`^([0-9]{1,4}) *- *([0-9]{1,4})$`)
)

const hopHelp = `a comparison such as ">=2", a range such as 2-5, or a mix such as {2: 60%, 3-4: 40%}`

// hopClass reads the bounds of one class.
func hopClass(s string) (c HopClass, ok bool) {
	c = HopClass{Min: 1, Max: MaxNodes, Share: 1}
	if m := hopRange.FindStringSubmatch(s); m != nil {
		c.Min, _ = strconv.Atoi(m[1])
		c.Max, _ = strconv.Atoi(m[2])
	} else if m := hopCompare.FindStringSubmatch(s); m != nil {
		k, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "", "=":
			c.Min, c.Max = k, k
		case ">=":
			c.Min = k
		case ">":
			c.Min = k + 1
		case "<=":
			c.Max = k
		case "<":
			c.Max = k - 1
		}
	} else {
		return c, false
	}
	return c, c.Min >= 1 && c.Min <= c.Max && c.Min < MaxNodes && c.Max <= MaxNodes
}

func (h *HopRule) decodeNode(d *decoder, n *node, at string) {
	*h = HopRule{}
	if n.kind == scalar && !n.null {
		c, ok := hopClass(n.text)
		if !ok {
			what := "not a number of hops"
			if n.text == "" {
				what = "empty: YAML reads > without quotes as the begin of a text"
			}
			d.bad(n, at, what, hopHelp)
			return
		}
		h.Classes = []HopClass{c}
		return
	}
	if n.kind != mapping || len(n.keys) == 0 {
		d.bad(n, at, "is "+describe(n), hopHelp)
		return
	}
	sum := 0.0
	for i, k := range n.keys {
		c, ok := hopClass(k.text)
		if !ok {
			d.bad(k, at, "not a number of hops", hopHelp)
			return
		}
		d.value(n.items[i], at+"."+k.text, reflect.ValueOf(&c.Share).Elem(), field{key: k.text, min: "0%", max: "100%", low: 0, high: 1})
		sum += float64(c.Share)
		h.Classes = append(h.Classes, c)
	}
	if sum < 0.9999 || sum > 1.0001 {
		d.bad(n, at, fmt.Sprintf("the shares add up to %v", vtime.Fraction(sum)), "100%")
	}
	sort.SliceStable(h.Classes, func(i, j int) bool { return h.Classes[i].Min < h.Classes[j].Min })
	for i := 1; i < len(h.Classes); i++ {
		if h.Classes[i].Min <= h.Classes[i-1].Max {
			d.bad(n, at, fmt.Sprintf("two classes hold routes of %d hops", h.Classes[i].Min), "classes that do not overlap")
			return
		}
	}
}

// Any reports whether the rule allows every pair.
func (h HopRule) Any() bool { return len(h.Classes) == 0 }

// Allows reports whether a route of so many hops fits any class.
func (h HopRule) Allows(hops int) bool { return h.Any() || h.Class(hops) >= 0 }

// Class returns the index of the class that holds routes of so many hops, or
// -1.
func (h HopRule) Class(hops int) int {
	for i, c := range h.Classes {
		if c.Min <= hops && hops <= c.Max {
			return i
		}
	}
	return -1
}

// Counts divides count flows among the classes by largest remainder, ties to
// the shorter routes, so that 30 flows of {2: 30%, 3: 30%, 4: 10%, 5: 20%, 7:
// 10%} are exactly 9, 9, 3, 6 and 3.
func (h HopRule) Counts(count int) []int {
	n := make([]int, len(h.Classes))
	rest := make([]float64, len(h.Classes))
	left := count
	for i, c := range h.Classes {
		exact := float64(count) * float64(c.Share)
		n[i] = int(exact + 1e-9)
		rest[i] = exact - float64(n[i])
		left -= n[i]
	}
	order := make([]int, len(n))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return rest[order[a]] > rest[order[b]]+1e-9 })
	for i := 0; left > 0 && len(order) > 0; i = (i + 1) % len(order) {
		if h.Classes[order[i]].Share > 0 {
			n[order[i]]++
			left--
		}
	}
	return n
}

// String writes the class as in a file.
func (c HopClass) String() string {
	switch {
	case c.Min == c.Max:
		return strconv.Itoa(c.Min)
	case c.Max == MaxNodes:
		return ">=" + strconv.Itoa(c.Min)
	}
	return fmt.Sprintf("%d-%d", c.Min, c.Max)
}
