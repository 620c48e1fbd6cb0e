package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Recording are the files of one attempt at a run. A nil Recording has none.
type Recording struct {
	files   *Files
	s       *plan.Scenario
	capture backend.Capture
	parts   []part
	failed  failures // of files that could not be opened
}

// part is a file that is being written.
type part struct {
	kind, path string // where it goes in the end
	f          *os.File
}

// Begin opens the files of an attempt. A file that cannot be opened is reported
// by End: the run goes on without.
func (f *Files) Begin(s *plan.Scenario, on string) *Recording {
	if f == nil {
		return nil
	}
	r := &Recording{files: f, s: s}
	r.capture = backend.Capture{SnapLen: f.want.SnapLen, At: f.at(s),
		Comment: fmt.Sprintf("%s: %s, repetition %d, seed %d, on %s", f.experiment, s.Label(), s.Repetition, s.Seed, on)}
	r.capture.Packets = r.open(KindPackets, f.want.Packets, on)
	r.capture.Events = r.open(KindEvents, f.want.Events, on)
	return r
}

func (r *Recording) open(kind, name, on string) *os.File {
	if name == "" {
		return nil
	}
	path := r.files.path(name, r.s.Run, on)
	f, err := os.OpenFile(path+partSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		r.failed.add(path, err)
		return nil
	}
	r.parts = append(r.parts, part{kind, path, f})
	return f
}

// Capture is what to ask a back end for; nil for nothing.
func (r *Recording) Capture() *backend.Capture {
	if r == nil || len(r.parts) == 0 {
		return nil
	}
	return &r.capture
}

// Discard removes what was written: the user has stopped the run.
func (r *Recording) Discard() {
	if r == nil {
		return
	}
	for _, p := range r.parts {
		_ = p.f.Close()
		_ = os.Remove(p.path + partSuffix) // there is nobody to tell
	}
	r.parts = nil
}

// End closes the files. Those of a complete run get their names and are entered
// into its record; those of another attempt are put aside until an attempt is
// complete. The error, of which the record has a warning, is why a file could not
// be kept or is incomplete.
func (r *Recording) End(rec *store.RunRecord) error {
	if r == nil {
		return nil
	}
	failed := r.failed
	written := map[string]error{KindPackets: r.capture.PacketsErr, KindEvents: r.capture.EventsErr}
	for i := range r.parts {
		p := &r.parts[i]
		for _, err := range append([]error{written[p.kind]}, r.keep(p, rec)...) {
			failed.add(p.path, err)
		}
	}
	r.parts = nil
	var failure error
	if len(failed) > 0 {
		failure = failed
		rec.Run.Warnings = append(rec.Run.Warnings, failure.Error())
	}
	if n := r.capture.Stats.Dropped(); n > 0 {
		rec.Run.Warnings = append(rec.Run.Warnings, fmt.Sprintf("%d frames and events are missing from the capture: the disk was too slow for them", n))
	}
	return failure
}

func (r *Recording) keep(p *part, rec *store.RunRecord) (errs []error) {
	from := p.path + partSuffix
	if p.kind == KindEvents {
		merged, err := r.merge(p, rec)
		if err == nil {
			from = merged
		} else {
			errs = append(errs, fmt.Errorf("without the events of flows: %w", cause(err)))
		}
	}
	if err := p.f.Close(); err != nil {
		return append(errs, err)
	}
	if from != p.path+partSuffix {
		_ = os.Remove(p.path + partSuffix) // its contents are in the other one
	}
	return append(errs, r.name(p, from, rec))
}

// name gives a finished file its name.
func (r *Recording) name(p *part, from string, rec *store.RunRecord) error {
	if st, err := os.Stat(from); err == nil && st.Size() == 0 {
		// Not even its header found room, or the attempt failed before its begin.
		if err := os.Remove(from); err != nil || rec.Run.Status != store.RunComplete {
			return err
		}
		return errors.New("nothing could be written, so there is no file")
	}
	if rec.Run.Status != store.RunComplete {
		return r.putAside(p.path, from, rec)
	}
	if !r.files.want.Overwrite {
		if err := absent(p.path); err != nil {
			return fmt.Errorf("%w; this run's is %s", err, from)
		}
	}
	a := store.Artifact{Kind: p.kind, Path: p.path}
	var err error
	if a.SHA256, a.Bytes, err = digest(from); err != nil {
		return err
	}
	if err := os.Rename(from, p.path); err != nil {
		return err
	}
	rec.Artifacts = append(rec.Artifacts, a)
	r.files.forget(p.path)
	return nil
}

// putAside gives the file of an attempt without a valid result a name that says
// so.
func (r *Recording) putAside(path, from string, rec *store.RunRecord) error {
	to := aside(path, rec.Run.Status)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	if !slices.Contains(r.files.left[path], to) {
		r.files.left[path] = append(r.files.left[path], to)
	}
	rec.Events = append(rec.Events, store.Event{Kind: "capture", Text: to + ": until another attempt"})
	return nil
}

// failures are why files are missing or incomplete, in one line.
type failures []error

func (f *failures) add(path string, err error) {
	if err == nil {
		return
	}
	err = fmt.Errorf("%s: %w", path, cause(err))
	if !slices.ContainsFunc(*f, func(e error) bool { return e.Error() == err.Error() }) {
		*f = append(*f, err)
	}
}

// Error implements error.
func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return "missing or incomplete: " + strings.Join(texts, "; ")
}

// Unwrap gives the failures to errors.Is and errors.As.
func (f failures) Unwrap() []error { return f }

// forget removes what earlier attempts at a run have left.
func (f *Files) forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, old := range f.left[path] {
		_ = os.Remove(old) // somebody else may have been faster
	}
	delete(f.left, path)
}

func digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// merge writes the event log with the lives of the flows in it, and returns the
// name of that file.
func (r *Recording) merge(p *part, rec *store.RunRecord) (string, error) {
	if _, err := p.f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	name := p.path + mergeSuffix
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return "", err
	}
	err = errors.Join(capture.Merge(out, p.f, r.capture.Config(r.s), flowNotes(rec)), out.Close())
	if err != nil {
		_ = os.Remove(name)
		return "", err
	}
	return name, nil
}

// flowNotes are the events of a run's flows, and of what the experiment switches, in
// order of time.
func flowNotes(rec *store.RunRecord) []capture.Note {
	var notes []capture.Note
	at := func(s float64) vtime.Time { return vtime.Time(vtime.FromSeconds(s)) }
	for i := range rec.Flows {
		f := &rec.Flows[i]
		name := fmt.Sprintf("%d", f.Flow)
		notes = append(notes, capture.Note{At: at(f.StartS), Node: f.Src, What: "flow", Text: name + " begins: " + f.Transport + " to " + rec.Nodes[f.Dst].Name})
		if !f.CompletionS.OK { // else it has finished before, which is an event
			notes = append(notes, capture.Note{At: at(f.StopS), Node: f.Src, What: "flow", Text: name + " ends"})
		}
	}
	for i := range rec.Events {
		e := &rec.Events[i]
		if what, state, is := strings.Cut(e.Kind, "-"); is && (what == "link" || what == "node") && e.TUs.OK && e.Node.OK {
			notes = append(notes, capture.Note{At: vtime.Time(e.TUs.V) * 1000, Node: int(e.Node.V), What: what, Text: e.Text + " " + state, Rounded: vtime.Microsecond})
			continue
		}
		if !e.TUs.OK || !e.Node.OK || !e.Flow.OK || e.Node.V < 0 || int(e.Node.V) >= len(rec.Nodes) {
			continue
		}
		text := fmt.Sprintf("%d %s (%s)", e.Flow.V, e.Kind, e.Text)
		notes = append(notes, capture.Note{At: vtime.Time(e.TUs.V) * 1000, Node: int(e.Node.V), What: "flow",
			Text: strings.Join(strings.Fields(text), " "), Rounded: vtime.Microsecond})
	}
	slices.SortStableFunc(notes, func(a, b capture.Note) int { return int(min(1, max(-1, a.At-b.At))) })
	return notes
}
