package figure

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// style is how one element is painted: what the style sheet says of its classes.
type style struct {
	fill, stroke               color.NRGBA
	hasFill, hasStroke         bool
	fillOpacity, strokeOpacity float64
	width                      float64
	dash                       []float64
	fontSize                   float64
	bold                       bool
	strokeFirst                bool // a halo: the stroke lies below the fill
}

// rule is one rule of the style sheet, for one selector.
type rule struct {
	text    bool     // of text elements only
	classes []string // that an element must all have
	props   map[string]string
}

// lightRules are the rules of fixedCSS. What is drawn without a browser reads the
// same style sheet as browsers do, so that there is one truth about looks.
var lightRules = sync.OnceValues(func() ([]rule, error) { return parseRules(fixedCSS()) })

// parseRules reads the small language that rules uses: selectors of classes, of
// text inside .hb-fig, and lists of such.
func parseRules(css string) ([]rule, error) {
	var out []rule
	for _, block := range strings.Split(css, "}") {
		selectors, body, ok := strings.Cut(block, "{")
		if !ok {
			if strings.TrimSpace(block) != "" {
				return nil, fmt.Errorf("style sheet: %q has no body", block)
			}
			continue
		}
		props := map[string]string{}
		for _, d := range strings.Split(body, ";") {
			name, value, ok := strings.Cut(d, ":")
			if !ok && strings.TrimSpace(d) != "" {
				return nil, fmt.Errorf("style sheet: %q has no value", d)
			}
			props[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		for _, sel := range strings.Split(selectors, ",") {
			r := rule{props: props}
			sel = strings.TrimSpace(sel)
			if rest, ok := strings.CutPrefix(sel, ".hb-fig text"); ok {
				r.text, sel = true, rest
			}
			if strings.ContainsAny(sel, " >:[#*") {
				return nil, fmt.Errorf("style sheet: the selector %q is none that this reader knows", sel)
			}
			for _, c := range strings.Split(sel, ".") {
				if c != "" {
					r.classes = append(r.classes, c)
				}
			}
			out = append(out, r)
		}
	}
	// By specificity: more classes win, then what comes later.
	slices.SortStableFunc(out, func(a, b rule) int { return a.weight() - b.weight() })
	return out, nil
}

// weight is the rule's specificity; .hb-fig is a class as well.
func (r *rule) weight() int {
	w := 2 * len(r.classes)
	if r.text {
		w += 3
	}
	return w
}

// styleOf resolves the style of an element with these classes.
func styleOf(classes string, text bool) (style, error) {
	s := style{fill: color.NRGBA{A: 255}, hasFill: true, fillOpacity: 1, strokeOpacity: 1, width: 1, fontSize: 16}
	rules, err := lightRules()
	if err != nil {
		return s, err
	}
	have := strings.Fields(classes)
	for i := range rules {
		r := &rules[i]
		if r.text && !text || !r.text && len(r.classes) == 0 || slices.ContainsFunc(r.classes, func(c string) bool { return !slices.Contains(have, c) }) {
			continue
		}
		for name, value := range r.props {
			if err := s.set(name, value); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// set takes one property; those that decide nothing here are left alone.
func (s *style) set(name, value string) (err error) {
	number := func(to *float64) {
		if *to, err = strconv.ParseFloat(strings.TrimSuffix(value, "px"), 64); err != nil {
			err = fmt.Errorf("style sheet: %s: %s is no number", name, value)
		}
	}
	switch name {
	case "fill":
		s.fill, s.hasFill, err = paint(value)
	case "stroke":
		s.stroke, s.hasStroke, err = paint(value)
	case "fill-opacity":
		number(&s.fillOpacity)
	case "stroke-opacity":
		number(&s.strokeOpacity)
	case "stroke-width":
		number(&s.width)
	case "font-size":
		number(&s.fontSize)
	case "font-weight":
		s.bold = value != "400" && value != "normal"
	case "paint-order":
		s.strokeFirst = value == "stroke"
	case "stroke-dasharray":
		s.dash = nil
		for _, f := range strings.Fields(value) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil || v <= 0 {
				return fmt.Errorf("style sheet: %s: %s is no length", name, value)
			}
			s.dash = append(s.dash, v)
		}
	}
	return err
}

// paint reads none or #rrggbb.
func paint(value string) (c color.NRGBA, some bool, err error) {
	if value == "none" {
		return c, false, nil
	}
	hex, ok := strings.CutPrefix(value, "#")
	v, err := strconv.ParseUint(hex, 16, 32)
	if !ok || len(hex) != 6 || err != nil {
		return c, false, fmt.Errorf("style sheet: %s is no colour like #1b1f24", value)
	}
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}, true, nil
}
