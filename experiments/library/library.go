package library

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.yaml *.md
var files embed.FS

// Names lists the shipped experiments in the order in which a newcomer would
// try them: the smoke test first, the headline last.
func Names() []string {
	return []string{"smoke", "onehop", "chain", "loss-sweep", "access-point", "load30", "load30-1m", "load30-open", "single-hop", "arq-cost", "multi-hop", "backpressure", "hidden", "breakdown", "micro", "voip", "web", "partition", "node-death", "wlan-fairness", "wlan-fairness-w20", "wlan-fairness-w60", "wlan-fairness-delayed", "wlan-fairness-rewriting", "wlan-fairness-flows", "wlan-fairness-udp", "wlan-fairness-mtu", "wlan-fairness-cubic", "coop-stations", "coop-buffer", "coop-mixed", "coop-rising", "coop-falling", "hsdpa", "hsdpa-queue", "hsdpa-flows", "calibrate"}
}

// Source returns the text of a shipped experiment.
func Source(name string) ([]byte, bool) {
	for _, n := range Names() {
		if n == name {
			b, err := files.ReadFile(name + ".yaml")
			if err != nil {
				panic(fmt.Sprintf("library: the table names %s, but: %v", name, err))
			}
			return b, true
		}
	}
	return nil, false
}

// File returns the text of a file that a shipped experiment names, such as a
// trace: it is a spec.Files. The error says that there is none.
func File(name string) ([]byte, error) {
	b, err := files.ReadFile(path.Clean(name))
	if err != nil {
		return nil, fmt.Errorf("no file %s is shipped beside this experiment; copy the experiment into a folder with that file, and run it from there", name)
	}
	return b, nil
}

// Page returns the explanation of a shipped experiment in Markdown: its own, else
// that of the name before the dash, which variants such as load30-open share, else
// that of the paper that it refers to.
func Page(name string) (string, bool) {
	src, ok := Source(name)
	if !ok {
		return "", false
	}
	for _, n := range []string{name, strings.SplitN(name, "-", 2)[0], paperOf(src)} {
		if b, err := files.ReadFile(path.Clean(n) + ".md"); err == nil {
			return string(b), true
		}
	}
	return "", false
}

// PaperPage returns the page of a paper: what it did, what we do, what differs.
func PaperPage(paper string) (string, bool) {
	b, err := files.ReadFile(path.Clean(paper) + ".md")
	return string(b), err == nil
}

// paperOf is the paper that an experiment's text refers to, "" for none.
func paperOf(src []byte) string {
	for line := range strings.Lines(string(src)) {
		if ref, ok := strings.CutPrefix(line, "reference:"); ok {
			paper, _, _ := strings.Cut(strings.TrimSpace(ref), "/")
			return paper
		}
	}
	return ""
}
