// Command testcount reads the output of "go test -json" on standard input,
// prints every failure whole and, at the end, the skips by reason and the
// counts of passed, failed and skipped tests. A skip without a typed reason, or
// more skips than -max-skips, is a failure: a suite that skips itself away must
// not look green.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	ImportPath                    string
	Elapsed                       float64
}

var typedSkip = regexp.MustCompile(`SKIP\[([^\]]+)\]`)

type summary struct {
	passed, failed, skipped, untyped int
	reasons                          map[string]int
	failedIn                         map[string]bool // packages that have a failed test
}

func main() {
	maxSkips := flag.Int("max-skips", -1, "fail when more tests are skipped (-1: no bound)")
	flag.Parse()
	s, err := read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(2)
	}
	names := make([]string, 0, len(s.reasons))
	for r := range s.reasons {
		names = append(names, r)
	}
	sort.Strings(names)
	for _, r := range names {
		fmt.Printf("skipped %d: %s\n", s.reasons[r], r)
	}
	bad := s.failed > 0 || s.passed == 0
	if s.untyped > 0 {
		fmt.Printf("%d tests were skipped without a typed reason\n", s.untyped)
		bad = true
	}
	if *maxSkips >= 0 && s.skipped > *maxSkips {
		fmt.Printf("%d tests were skipped, at most %d are allowed here\n", s.skipped, *maxSkips)
		bad = true
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	if bad {
		os.Exit(1)
	}
}

// read counts the events of r and writes package results and the output of
// failed tests to w.
func read(r io.Reader, w io.Writer) (summary, error) {
	s := summary{reasons: map[string]int{}, failedIn: map[string]bool{}}
	output := map[string][]string{}
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(w, "%s", line) // a compiler's or a panic's raw text
				continue
			}
			s.take(e, output, w)
		}
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}

func (s *summary) take(e event, output map[string][]string, w io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			fmt.Fprint(w, e.Output)
			return
		}
		output[key] = append(output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			if e.Action == "fail" {
				fmt.Fprint(w, strings.Join(output[key], ""))
				s.packageFailed(e, w)
			} else if e.Action == "pass" {
				fmt.Fprintf(w, "ok   %s %.1fs\n", e.Package, e.Elapsed)
			}
			delete(output, key)
			return
		}
		switch e.Action {
		case "pass":
			s.passed++
		case "fail":
			s.failed++
			s.failedIn[e.Package] = true
			fmt.Fprint(w, strings.Join(output[key], ""))
		case "skip":
			s.skipped++
			if m := typedSkip.FindStringSubmatch(strings.Join(output[key], "")); m != nil {
				s.reasons[m[1]]++
			} else {
				s.untyped++
				fmt.Fprint(w, strings.Join(output[key], ""))
			}
		}
		delete(output, key)
	}
}

// packageFailed counts a package that failed without a failed test (it did not
// build, or its process died), so that it cannot be missed in the counts.
func (s *summary) packageFailed(e event, w io.Writer) {
	fmt.Fprintf(w, "FAIL %s\n", e.Package)
	if !s.failedIn[e.Package] {
		s.failed++
	}
}
