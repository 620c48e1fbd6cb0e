package run

import (
	"errors"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
)

// The lines that Text adds.
const (
	quickLine = "# run with --quick"
	setLine   = "# run with --set "
	fileLine  = "# with the file "
)

// ErrOtherFiles says that a file which an experiment names is not what it was.
var ErrOtherFiles = errors.New("a file that the experiment names is not the one that it was run with")

// Recorded is the experiment whose Text is kept with a campaign, with what the
// command line changed then. open gives the files that the experiment names; the
// error is ErrOtherFiles where one of them has changed.
func Recorded(name, text string, open spec.Files) (*spec.Experiment, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	end := len(lines)
	for end > 0 && (lines[end-1] == quickLine || strings.HasPrefix(lines[end-1], setLine) || strings.HasPrefix(lines[end-1], fileLine)) {
		end--
	}
	e, err := spec.ParseFiles(name, []byte(strings.Join(lines[:end], "\n")+"\n"), open)
	if err != nil {
		return nil, err
	}
	var sets []spec.Assignment
	for _, l := range lines[end:] {
		if l == quickLine {
			if err := e.ApplyQuick(); err != nil {
				return nil, err
			}
		} else if s, ok := strings.CutPrefix(l, setLine); ok {
			a, err := spec.ParseAssignment(s)
			if err != nil {
				return nil, err
			}
			sets = append(sets, a)
		}
	}
	if len(sets) > 0 {
		if err := e.Set(sets...); err != nil {
			return nil, err
		}
	}
	if Text(e) != text {
		return nil, ErrOtherFiles
	}
	return e, nil
}
