package artifact

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Suffixes and marks of file names.
const (
	partSuffix  = ".part"        // while a run goes on
	mergeSuffix = ".merged.part" // while an event log gets its flows' events
)

// maxLabel bounds a point's label in a file name; the index tells points apart.
const maxLabel = 60

// path is where the file of a run goes: as the user named it if there is one run
// only, else with the back end, the run's number, its point and its repetition
// before the extension.
func (f *Files) path(name string, r plan.Run, backend string) string {
	if f.runs == 1 && f.backends == 1 {
		return name
	}
	// With the back end in any case: a campaign that is resumed on one of several
	// goes on with the names that it began with.
	mark := "-" + backend
	if f.runs > 1 {
		mark += fmt.Sprintf("-%0*d-%s-r%d", len(fmt.Sprint(f.runs)), r.Index+1, safe(r.Label()), r.Repetition)
	}
	return insert(name, mark)
}

// aside is where the file of an attempt goes that gave no valid result, until
// another attempt does.
func aside(path string, s store.RunStatus) string { return insert(path, "-"+string(s)) }

// insert puts text before a path's extension.
func insert(path, text string) string {
	ext := filepath.Ext(path)
	if ext == filepath.Base(path) { // .name
		ext = ""
	}
	return strings.TrimSuffix(path, ext) + text + ext
}

// safe turns a label into a part of a file name that needs no quotes anywhere.
func safe(label string) string {
	var b strings.Builder
	for _, c := range label {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '=', c == '_':
			b.WriteRune(c)
		default:
			if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
				b.WriteByte('-')
			}
		}
		if b.Len() >= maxLabel {
			break
		}
	}
	return strings.Trim(b.String(), "-.")
}
