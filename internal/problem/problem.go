package problem

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Pos is where a value stands: a place in a file, or an option of the command
// line.
type Pos struct {
	File      string
	Line, Col int    // from 1
	Origin    string // "--set radio.rate" for values that come from no file
}

// String writes "file:line:column", or the option.
func (p Pos) String() string {
	if p.Origin != "" {
		return p.Origin
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
}

// Problem is one mistake in a file that a user wrote.
type Problem struct {
	Pos     Pos
	Path    string // of the key, "flows[0].transport"
	Value   string // as written, shortened; empty when the mistake is not a value
	What    string // what is wrong
	Allowed string // what would be right
	Hint    string // what was probably meant
}

// Error writes the problem on one line.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Pos.String())
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	if p.Value != "" {
		b.WriteString(p.Value + ": ")
	}
	b.WriteString(p.What)
	if p.Allowed != "" {
		b.WriteString("; allowed: " + p.Allowed)
	}
	if p.Hint != "" {
		b.WriteString("; did you mean " + p.Hint + "?")
	}
	return b.String()
}

// Max bounds what is shown of a very wrong file.
const Max = 20

// Errors is everything that is wrong with a file, in file order, at most 20
// problems; More counts the rest.
type Errors struct {
	Problems []*Problem
	More     int
}

// Error writes one problem a line.
func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As every problem.
func (e *Errors) Unwrap() []error {
	out := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		out[i] = p
	}
	return out
}

// Join makes one error of problems, in file order; nil when there are none. more
// counts those that were left out before.
func Join(problems []*Problem, more int) error {
	if len(problems) == 0 {
		return nil
	}
	ps := append([]*Problem(nil), problems...)
	sort.SliceStable(ps, func(i, j int) bool {
		a, b := ps[i].Pos, ps[j].Pos
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	e := &Errors{Problems: ps, More: more}
	if len(ps) > Max {
		e.Problems, e.More = ps[:Max], more+len(ps)-Max
	}
	return e
}

// Quote shows a value from a file: quoted, control characters escaped, not
// longer than a line.
func Quote(s string) string {
	const limit = 60
	r := []rune(s)
	if len(r) > limit {
		return strconv.Quote(string(r[:limit])) + "…"
	}
	return strconv.Quote(s)
}

// Suggest returns the candidate that was probably meant, quoted, or "".
func Suggest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bestDist := "", 1+len(word)/3
	for _, c := range candidates {
		if strings.EqualFold(c, word) {
			return strconv.Quote(c)
		}
		// A word that was cut or written without its dashes is close too.
		if strings.ReplaceAll(c, "-", "") == strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word)) {
			return strconv.Quote(c)
		}
		if d := distance(word, c); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = c, d
		}
	}
	if best == "" {
		return ""
	}
	return strconv.Quote(best)
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur, prev, prev2 := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
