package spec

import "github.com/hopbed/hopbed/internal/problem"

// Mistakes are told as those of every file of hopbed.
type (
	// Pos is where a value stands: a place in a file, or an option of the command
	// line.
	Pos = problem.Pos
	// Problem is one mistake in an experiment file.
	Problem = problem.Problem
	// Errors is everything that is wrong with a file, in file order, at most 20
	// problems; More counts the rest.
	Errors = problem.Errors
)

const maxProblems = problem.Max

// report collects problems. The same mistake seen through several points of a
// matrix counts once.
type report struct {
	problems []*Problem
	seen     map[string]bool
	more     int
}

func (r *report) add(p *Problem) {
	key := p.Error()
	if r.seen[key] {
		return
	}
	if len(r.problems) >= 50*maxProblems {
		r.more++ // sorting needs some surplus, not all of it
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	r.problems = append(r.problems, p)
}

func (r *report) err() error { return problem.Join(r.problems, r.more) }

func quote(s string) string { return problem.Quote(s) }

// Suggest returns the candidate that was probably meant, quoted, or "".
func Suggest(word string, candidates []string) string { return problem.Suggest(word, candidates) }

func suggest(word string, candidates []string) string { return problem.Suggest(word, candidates) }
