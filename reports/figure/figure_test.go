package figure

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/reports/stats"
)

var update = flag.Bool("update", false, "write the golden files anew")

func values(n int, scale, growth float64) []float64 {
	var x []float64
	v := scale
	for range n {
		x = append(x, math.Round(v))
		v *= growth
	}
	return x
}

// examples are one of each figure, from fixed numbers.
func examples() []*Figure {
	series := []Series{{Label: "hop", Values: values(12, 20e3, 1.2)}, {Label: "tcp/cubic", Values: append([]float64{0, 0, 3}, values(9, 200, 2.2)...)}, {Label: "hop-by-hop-tcp/cubic", Values: values(12, 4e3, 1.4)}}
	repeated := []Repeated{
		{"hop", stats.Blocks{values(6, 20e3, 1.3), values(6, 24e3, 1.2)}},
		{"tcp/cubic", stats.Blocks{append([]float64{0, 0}, values(4, 500, 5)...), append([]float64{0, 12}, values(4, 900, 4)...)}},
	}
	band := Band{Label: "hop", StepS: 1, WarmupS: 2}
	for i := range 10 {
		s := BandStep{StartS: float64(i), OK: i != 5 && i != 6}
		if s.OK {
			for j := range s.QBps {
				s.QBps[j] = 1000 * float64(i+1) * float64(j+1)
			}
		}
		band.Steps = append(band.Steps, s)
	}
	gains := []Gain{{"hop", 0, []int{2, 3, 4}, []stats.Estimate{
		{Value: 3, N: 5, HasInterval: true, Lo: 2, Hi: 5}, {Value: 8, N: 1}, {Value: math.Inf(1), N: 5, HasInterval: true, Lo: 12, Hi: math.Inf(1)}}}}
	m := Map{
		Nodes: []MapNode{{"n01", 0, 0, true, false}, {"n02", 40, 10, true, false}, {"gateway", 80, 0, true, false}, {"n04", 60, 30, true, false}},
		Links: []MapLink{{0, 1, 0.95, true}, {1, 2, 0.4, true}, {1, 3, 0.6, true}, {2, 3, 0.2, true}, {0, 3, 0.15, false}, {0, 2, 0.05, false}},
		Flows: []MapFlow{{0, 2}, {0, 3}, {3, 0}},
	}
	wired := m
	wired.Nodes = append(m.Nodes[:4:4], MapNode{Name: "server", Wired: true})
	wired.Wires = []MapWire{{2, 4, "10 Mb/s, 20 ms, queue of 100 packets"}}
	ratios := []Ratio{
		{"delay=10ms, tcp/reno", stats.Estimate{Value: 1.02, N: 8, HasInterval: true, Lo: 0.99, Hi: 1.04}, "met", Good},
		{"delay=100ms, a name that is longer than the figure is wide, tcp/cubic", stats.Estimate{Value: 0.71, N: 8, HasInterval: true, Lo: 0.6, Hi: 0.8}, "missed", Bad},
		{"few", stats.Estimate{Value: 1.2, N: 3, HasInterval: true, Lo: 0.7, Hi: 1.9}, "too few", Doubtful},
		{"to nothing", stats.Estimate{Value: math.Inf(1), N: 5, HasInterval: true, Lo: 4, Hi: math.Inf(1)}, "missed", Bad},
		{"nothing", stats.Estimate{Value: 0, N: 5, HasInterval: true, Lo: 0, Hi: 0.4}, "missed", Bad},
		{"no pair", stats.Estimate{Value: math.NaN()}, "", Plain},
	}
	times := []Times{{"hop", []RepTimes{{1, []float64{4, 5, 7}, nil}, {2, []float64{6}, []float64{30, 30}}}}, {"tcp/cubic", nil}}
	at := func(v float64) SweepAt { return SweepAt{N: 5, Q1: 0.8 * v, Median: v, Q3: 1.3 * v} }
	panels := []SweepPanel{
		{"loss=0%", []string{"10ms", "50ms", "200ms"}, []SweepLine{{"hop", 0, []SweepAt{at(4e6), at(3.8e6), at(3e6)}}, {"tcp/cubic", 1, []SweepAt{at(4.5e6), {}, at(1e6)}}}},
		{"loss=5%", []string{"a place", "another place"}, []SweepLine{{"tcp/cubic", 1, []SweepAt{at(1e5), at(0)}}}},
	}
	air := []Airtime{{"hop", []NodeAirtime{{"n01", 0.2, 0.3, 0.1, 0.4}, {"n02", 0, 0.5, 0.25, 0.25}}, ""}, {"tcp/cubic", nil, "no valid run"}}
	var reps, few stats.Blocks
	for i := range 6 {
		reps = append(reps, values(5, 20e3*float64(i+1), 1.4))
		few = append(few, values(5, 4e3*float64(i+1), 2))
	}
	three := stats.BandOfCDF(few[:3], 1)
	six := stats.BandOfCDF(reps, 1)
	banded := []Series{{Label: "hop", Values: reps.All([]int{0, 1, 2, 3, 4, 5}), Band: &six}, {Label: "tcp/cubic", Values: few.All([]int{0, 1, 2}), Band: &three}}
	return []*Figure{
		CDF("cdf-bands", Goodput, banded),
		CDF("cdf", Goodput, series), Box("box", Goodput, series), Ranked("ranked", Goodput, repeated), Bands("bands", []Band{band, {Label: "tcp/cubic"}}),
		Gains("gains", "tcp/cubic", Goodput, gains), Topology("topology", m), Topology("wired", wired), AirtimeBars("airtime", air),
		CompletionTimes("times", times), Sweep("sweep", Goodput, "delay", panels),
		Ratios("ratios", "sim / netns, goodput", 0.05, ratios),
		CDF("delay", Delay, []Series{{Label: "hop", Values: []float64{0.002, 0.004, 0.1}, Open: []float64{0.1}}, {Label: "udp", Values: []float64{0.0015, 0.003}}}),
		Lines("lines", 2, 3, []LinesPanel{
			{"blocks in flight", []TimeLine{{"hop", 0, []float64{0, 1.5, math.NaN(), 4, 3.7}}}},
			{"share lost", []TimeLine{{"udp", 2, []float64{0.01, 0.2, 0, 0.23, 0.1}}, {"udp/txop", 3, []float64{math.NaN(), 0.1}}}},
			{"nothing", []TimeLine{{"hop", 0, []float64{0, 0}}}},
		}),
	}
}

func csvOf(t *testing.T, f *Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.CSV(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The drawings and their numbers are reviewed as text; -update writes them.
func TestGolden(t *testing.T) {
	for _, f := range examples() {
		for ext, got := range map[string][]byte{".svg": f.SVG(), ".csv": csvOf(t, f)} {
			path := filepath.Join("testdata", f.ID+ext)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not as recorded (%d bytes, want %d): look at it and run the test with -update", path, len(got), len(want))
			}
		}
	}
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	a, b := examples(), examples()
	for i := range a {
		if !bytes.Equal(a[i].SVG(), b[i].SVG()) || !bytes.Equal(a[i].Inline(), b[i].Inline()) {
			t.Errorf("%s differs from one call to the next", a[i].ID)
		}
	}
}

// check reads the SVG as XML, and that everything is inside the drawing.
func check(t *testing.T, f *Figure) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(f.SVG()))
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", f.ID, err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "path" {
			for _, a := range e.Attr {
				if a.Name.Local == "d" && strings.ContainsAny(a.Value, "NI") {
					t.Errorf("%s: a path without numbers: %s", f.ID, a.Value)
				}
			}
		}
	}
	for _, s := range f.shapes {
		for _, p := range s.pts {
			if math.IsNaN(p.x) || math.IsNaN(p.y) || p.x < -1 || p.x > Width+1 || p.y < -1 || p.y > f.height+1 {
				t.Errorf("%s: %s %q is at %v, outside of %v × %v", f.ID, s.class, s.text, p, f.width, f.height)
			}
		}
		if s.kind == label && s.rotate == 0 {
			w := textWidth(s.text)
			left := s.pts[0].x - map[string]float64{"middle": w / 2, "end": w}[s.anchor]
			if left < -6 || left+w > Width+30 { // the width is an upper estimate
				t.Errorf("%s: text %q reaches from %.0f to %.0f", f.ID, s.text, left, left+w)
			}
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(csvOf(t, f))).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Errorf("%s: CSV %d rows, %v", f.ID, len(rows), err)
	}
}

func TestWellFormed(t *testing.T) {
	for _, f := range examples() {
		check(t, f)
	}
}

// What results may be, however odd, is drawn or said to be missing.
func TestOddInput(t *testing.T) {
	inf := math.Inf(1)
	var many []Series
	for range 11 {
		many = append(many, Series{Label: "a transport with a rather long name", Values: values(3, 10, 10)})
	}
	var crowd Map
	var busy Airtime
	for i := range 100 {
		crowd.Nodes = append(crowd.Nodes, MapNode{"node", float64(i % 10), float64(i / 10), true, false})
		busy.Nodes = append(busy.Nodes, NodeAirtime{"a-long-node-name", 0.25, 0.25, 0.25, 0.25})
	}
	for name, f := range map[string]*Figure{
		"no series":          CDF("x", Goodput, nil),
		"no values":          CDF("x", Goodput, []Series{{Label: "hop", Values: nil}}),
		"all zero":           CDF("x", Goodput, []Series{{Label: "hop", Values: []float64{0, 0, 0}}}),
		"one value":          Box("x", Goodput, []Series{{Label: "hop", Values: []float64{5}}}),
		"box of nothing":     Box("x", Goodput, []Series{{Label: "hop", Values: nil}, {Label: "tcp", Values: []float64{0}}}),
		"tiny and huge":      Box("x", Goodput, []Series{{Label: "hop", Values: []float64{1e-9, 1e12}}}),
		"many series":        CDF("x", Goodput, many),
		"many boxes":         Box("x", Goodput, many),
		"ranks of nothing":   Ranked("x", Goodput, []Repeated{{Label: "hop"}}),
		"ranks of zero":      Ranked("x", Goodput, []Repeated{{"hop", stats.Blocks{{0, 0}}}}),
		"unequal blocks":     Ranked("x", Goodput, []Repeated{{"hop", stats.Blocks{{1, 2, 3}, {4}}}}),
		"no bands":           Bands("x", nil),
		"bands of gaps":      Bands("x", []Band{{Label: "hop", StepS: 1, Steps: []BandStep{{}, {StartS: 1}}}}),
		"warm-up only":       Bands("x", []Band{{Label: "hop", StepS: 1, WarmupS: 99, Steps: []BandStep{{OK: true}}}}),
		"infinite gain only": Gains("x", "tcp", Goodput, []Gain{{"hop", 0, []int{2}, []stats.Estimate{{Value: inf, N: 2, HasInterval: true, Lo: 0, Hi: inf}}}}),
		"undefined gain":     Gains("x", "tcp", Goodput, []Gain{{"hop", 0, []int{2}, []stats.Estimate{{Value: math.NaN(), N: 1}}}}),
		"no gains":           Gains("x", "tcp", Goodput, nil),
		"no nodes":           Topology("x", Map{}),
		"one node":           Topology("x", Map{Nodes: []MapNode{{"a", 5, 5, true, false}}}),
		"no positions":       Topology("x", Map{Nodes: []MapNode{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Links: []MapLink{{0, 1, 1, true}}}),
		"a vertical line":    Topology("x", Map{Nodes: []MapNode{{"a", 0, 0, true, false}, {"b", 0, 500, true, false}}}),
		"a chain":            Topology("x", Map{Nodes: []MapNode{{"a", 0, 0, true, false}, {"b", 500, 0, true, false}}}),
		"100 nodes":          Topology("x", crowd),
		"100 nodes' airtime": AirtimeBars("x", []Airtime{busy}),
		"no airtime":         AirtimeBars("x", nil),
	} {
		t.Run(name, func(t *testing.T) { check(t, f) })
	}
}

// Text that was named by others cannot leave its element.
func TestHostileText(t *testing.T) {
	bad := "</text><script>alert(1)</script>\" onload=\"x\x1b[31m\u202e\x00"
	for _, f := range []*Figure{
		CDF("x", Goodput, []Series{{Label: bad, Values: []float64{1, 2}}}),
		Topology("x", Map{Nodes: []MapNode{{bad, 0, 0, true, false}, {bad, 1, 1, true, false}}, Links: []MapLink{{0, 1, 1, true}}}),
		AirtimeBars("x", []Airtime{{bad, []NodeAirtime{{bad, 0.5, 0.5, 0, 0}}, ""}}),
		Gains("x", bad, Goodput, []Gain{{bad, 0, []int{1}, []stats.Estimate{{Value: 2, N: 1}}}}),
	} {
		check(t, &Figure{ID: f.ID, width: f.width, height: f.height, data: f.data})
		dec := xml.NewDecoder(bytes.NewReader(f.SVG()))
		for {
			tok, err := dec.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			e, ok := tok.(xml.StartElement)
			if !ok {
				continue
			}
			if e.Name.Local == "script" {
				t.Errorf("%s: a script element", f.ID)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("%s: attribute %s", f.ID, a.Name.Local)
				}
			}
		}
		if s := string(f.SVG()); strings.ContainsAny(s, "\x1b\x00\u202e") {
			t.Errorf("%s: control characters came through", f.ID)
		}
	}
}

// Every class that a figure uses is in the style sheet, in a page and alone.
func TestClassesAreStyled(t *testing.T) {
	classes := regexp.MustCompile(`class="([^"]*)"`)
	for _, f := range examples() {
		for _, m := range classes.FindAllStringSubmatch(string(f.Inline()), -1) {
			for _, c := range strings.Fields(m[1]) {
				if c != "hb-t" && (!strings.Contains(CSS(), "."+c) || !strings.Contains(fixedCSS(), "."+c)) {
					t.Errorf("%s: no rule for the class %s", f.ID, c)
				}
			}
		}
	}
	if css := fixedCSS(); strings.Contains(css, "var(") || strings.ContainsAny(strings.NewReplacer("{", "", "}", "").Replace(css), "{}") || regexp.MustCompile(`\{[a-z0-9]+\}`).MatchString(css) {
		t.Errorf("the style sheet of a figure that stands alone has colours left to fill in")
	}
}

// The first series differ in more than colour, and in lightness where they are
// filled, so that a grey print can be read.
func TestSeriesDifferInGrey(t *testing.T) {
	seen := map[string]bool{}
	for i, d := range dashes {
		if seen[d] {
			t.Errorf("series %d has the line style %q of another", i, d)
		}
		seen[d] = true
	}
}

func TestAxes(t *testing.T) {
	lin := axis{lo: 0, hi: 320}
	var got []string
	for _, k := range lin.ticks(6) {
		got = append(got, k.label)
	}
	if strings.Join(got, " ") != "0 100 200 300" {
		t.Errorf("linear ticks: %v", got)
	}
	log := logAxis([]float64{0, 12, 3e5})
	if log.lo != 10 || log.hi != 1e6 || log.stripAs != "<10" {
		t.Errorf("log axis: %+v", log)
	}
	wide := logAxis([]float64{1e-3, 2e6})
	if wide.lo != 10 || wide.hi != 1e7 || wide.stripAs != "<10" {
		t.Errorf("wide log axis: %+v", wide)
	}
	log.place(100, 400, 30)
	if log.at(10) != 130 || log.at(1e6) != 400 || log.at(0) >= 130 || log.at(0) < 100 || log.at(1e9) != 400 {
		t.Errorf("positions: %v %v %v %v", log.at(10), log.at(1e6), log.at(0), log.at(1e9))
	}
}

func TestRate(t *testing.T) {
	for v, want := range map[float64]string{0: "0 b/s", 384: "384 b/s", 999.6: "1.00 kb/s", 14_600: "14.6 kb/s", 999_400: "999 kb/s", 1_230_000: "1.23 Mb/s", 5.5: "5.50 b/s", 2e9: "2.00 Gb/s"} {
		if got := strings.ReplaceAll(Rate(v), "\u00a0", " "); got != want {
			t.Errorf("Rate(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestNum(t *testing.T) {
	for v, want := range map[float64]string{1: "1", 1.005: "1", 0.1: "0.1", -0.001: "0", 12.345: "12.35", -3.5: "-3.5", 100: "100"} {
		if got := num(v); got != want {
			t.Errorf("num(%v) = %q, want %q", v, got, want)
		}
	}
}
