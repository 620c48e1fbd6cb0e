package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/run"
)

// newObserver picks how progress is shown: a bar on a terminal, plain lines
// elsewhere, JSON lines on request, nothing when quiet. Progress goes to
// standard error, results to standard output.
func newObserver(quiet, jsonLines bool, stderr *os.File, w io.Writer) run.Observer {
	switch {
	case jsonLines:
		return newJSON(w)
	case quiet:
		return run.Silent{}
	case term.IsTerminal(int(stderr.Fd())):
		return &barObserver{lines: lineObserver{w: w}, w: w}
	}
	return &lineObserver{w: w}
}

// lineObserver writes one line for each event that matters: for logs and pipes.
type lineObserver struct {
	w     io.Writer
	phase string
}

func (o *lineObserver) CampaignStarted(c run.Campaign) {
	quick := ""
	if c.Quick {
		quick = " (quick: not for conclusions)"
	}
	resumed := ""
	if c.Finished > 0 {
		resumed = fmt.Sprintf(", %d already finished", c.Finished)
	}
	part := ""
	if c.Parts > 1 {
		part = fmt.Sprintf(", back end %d of %d", c.Part, c.Parts)
	}
	later := ""
	if c.Later > 0 {
		later = fmt.Sprintf(" (then about %s on the next)", roundTime(c.Later))
	}
	fmt.Fprintf(o.w, "campaign %d: %s on %s%s%s: %d runs%s, about %s%s, results in %s\n",
		c.ID, c.Name, c.Backend, part, quick, c.Runs, resumed, roundTime(c.Expected), later, c.Database)
}

func (o *lineObserver) RunStarted(r run.RunInfo) {
	o.phase = ""
	again := ""
	if r.Attempt > 1 {
		again = fmt.Sprintf(", attempt %d", r.Attempt)
	}
	fmt.Fprintf(o.w, "run %d/%d: %s, repetition %d%s, %s\n", r.Index+1, r.Total, r.Label, r.Repetition, again, roundTime(r.Length))
}

func (o *lineObserver) RunProgress(phase string, _, _ vtime.Duration) {
	if phase != o.phase {
		o.phase = phase
		fmt.Fprintf(o.w, "  %s\n", phase)
	}
}

func (o *lineObserver) RunDone(r run.RunInfo, out run.Outcome) {
	fmt.Fprintln(o.w, "  "+outcomeLine(out))
	for _, t := range out.Reasons {
		fmt.Fprintf(o.w, "  %s because: %s\n", out.Status, strings.ReplaceAll(clean2(t), "\n", "\n    "))
	}
	for _, t := range out.Warnings {
		fmt.Fprintf(o.w, "  warning: %s\n", clean(t))
	}
}

func (o *lineObserver) Warn(text string) { fmt.Fprintf(o.w, "warning: %s\n", clean(text)) }

func (o *lineObserver) CampaignDone(complete, invalid, failed int, wall time.Duration) {
	fmt.Fprintf(o.w, "finished in %s: %d complete, %d invalid, %d failed\n", roundTime(wall), complete, invalid, failed)
}

func outcomeLine(out run.Outcome) string {
	if out.Flows == 0 {
		return out.Status
	}
	text := fmt.Sprintf("%s: %d flows, ", out.Status, out.Flows)
	if out.Bulk > 0 {
		text += fmt.Sprintf("median %s, ", rate(out.MedianBP))
	}
	text += "aggregate " + rate(out.SumBP)
	if out.Bulk > 0 {
		text += fmt.Sprintf(", %d below 10 kb/s", out.Starved)
	}
	if out.Messages > 0 {
		text += fmt.Sprintf(", %d of %d messages delivered", out.Delivered, out.Messages)
	}
	return text
}

// barObserver shows one bar for all campaigns of the command with an estimate,
// and the finished runs as lines above it.
type barObserver struct {
	lines lineObserver
	w     io.Writer
	bar   *progressbar.ProgressBar
	info  run.RunInfo
	now   run.Campaign
	past  time.Duration // estimate of the campaigns before this one
	first int           // index of this campaign's first run; -1 before it

	survey *progressbar.ProgressBar // of the links, while they are measured
}

func (o *barObserver) CampaignStarted(c run.Campaign) {
	if o.bar != nil {
		o.bar.Clear()
		o.past += o.now.Expected
		o.bar.ChangeMax64(o.most(c))
	}
	o.now, o.first = c, -1
	o.lines.CampaignStarted(c)
}

// most is the length of the bar in wall time, as far as it is known.
func (o *barObserver) most(c run.Campaign) int64 {
	return max(1, int64(o.past+c.Expected+c.Later))
}

func (o *barObserver) RunStarted(r run.RunInfo) {
	if o.bar == nil {
		o.bar = progressbar.NewOptions64(o.most(o.now),
			progressbar.OptionSetWriter(o.w), progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true))
	}
	if o.first < 0 {
		o.first = r.Index
	}
	o.info = r
	o.describe("prepare")
}

// at is how far the campaigns have come in the bar's wall time, a share of the
// present run being done. By the position, not by counting: a run may take
// several attempts.
func (o *barObserver) at(share float64) int64 {
	done := (float64(o.info.Index-o.first) + share) / float64(max(1, o.info.Total-o.first))
	return int64(o.past) + int64(done*float64(o.now.Expected))
}

func (o *barObserver) describe(phase string) {
	on := ""
	if o.now.Parts > 1 {
		on = o.now.Backend + ", "
	}
	o.bar.Describe(fmt.Sprintf("%srun %d/%d %s: %s", on, o.info.Index+1, o.info.Total, clean(o.info.Label), phase))
}

func (o *barObserver) RunProgress(phase string, at, length vtime.Duration) {
	o.describe(phase)
	if length > 0 {
		o.bar.Set64(min(o.at(float64(at)/float64(length)), o.bar.GetMax64()-1))
	}
}

func (o *barObserver) RunDone(r run.RunInfo, out run.Outcome) {
	o.bar.Clear()
	fmt.Fprintf(o.w, "run %d/%d %s, repetition %d\n", r.Index+1, r.Total, clean(r.Label), r.Repetition)
	o.lines.RunDone(r, out)
}

func (o *barObserver) Warn(text string) {
	if o.bar != nil {
		o.bar.Clear()
	}
	if o.survey != nil {
		o.survey.Clear()
	}
	o.lines.Warn(text)
}

func (o *barObserver) CampaignDone(complete, invalid, failed int, wall time.Duration) {
	if o.bar != nil {
		o.bar.Clear()
	}
	o.lines.CampaignDone(complete, invalid, failed, wall)
}

// jsonObserver writes one JSON object a line, for programs that drive hopbed.
type jsonObserver struct {
	enc     *json.Encoder
	last    time.Time
	backend string // of the present campaign
}

func newJSON(w io.Writer) *jsonObserver { return &jsonObserver{enc: json.NewEncoder(w)} }

func (o *jsonObserver) emit(kind string, v any) {
	_ = o.enc.Encode(map[string]any{"event": kind, "data": v})
}

// Units are in the names, as in the database.
func (o *jsonObserver) CampaignStarted(c run.Campaign) {
	o.backend = c.Backend
	o.emit("campaign", map[string]any{"campaign": c.ID, "name": c.Name, "backend": c.Backend, "quick": c.Quick,
		"runs": c.Runs, "finished": c.Finished, "expected_s": c.Expected.Seconds(), "database": c.Database,
		"part": c.Part, "parts": c.Parts, "later_s": c.Later.Seconds()})
}

func (o *jsonObserver) run(r run.RunInfo) map[string]any {
	return map[string]any{"run": r.Index + 1, "total": r.Total, "label": r.Label, "repetition": r.Repetition,
		"attempt": r.Attempt, "length_s": r.Length.Seconds(), "backend": o.backend}
}

func (o *jsonObserver) RunStarted(r run.RunInfo) { o.emit("run", o.run(r)) }
func (o *jsonObserver) RunProgress(phase string, at, length vtime.Duration) {
	if time.Since(o.last) < time.Second {
		return
	}
	o.last = time.Now()
	o.emit("progress", map[string]any{"phase": phase, "at_s": at.Seconds(), "length_s": length.Seconds()})
}
func (o *jsonObserver) RunDone(r run.RunInfo, out run.Outcome) {
	d := o.run(r)
	d["run_id"], d["status"], d["wall_s"] = out.RunID, out.Status, out.Wall.Seconds()
	d["reasons"], d["warnings"] = append([]string{}, out.Reasons...), append([]string{}, out.Warnings...)
	d["flows"], d["median_bps"], d["aggregate_bps"], d["starved"] = out.Flows, out.MedianBP, out.SumBP, out.Starved
	if out.Messages > 0 {
		d["messages"], d["messages_delivered"] = out.Messages, out.Delivered
	}
	o.emit("done", d)
}
func (o *jsonObserver) Warn(text string) { o.emit("warning", text) }
func (o *jsonObserver) CampaignDone(complete, invalid, failed int, wall time.Duration) {
	o.emit("finished", map[string]any{"backend": o.backend, "complete": complete, "invalid": invalid, "failed": failed, "wall_s": wall.Seconds()})
}

// rate writes a goodput for people: three significant digits with a unit. What rounds
// to a thousand takes the next unit.
func rate(bps float64) string {
	switch {
	case bps >= 0.9995e6:
		return three(bps/1e6) + " Mb/s"
	case bps >= 0.9995e3:
		return three(bps/1e3) + " kb/s"
	}
	return three(bps) + " b/s"
}

// three writes three significant digits, without an exponent where that is 1,000 and
// more.
func three(v float64) string {
	if math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func roundTime(d time.Duration) string {
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// clean keeps control characters of a file's text away from the terminal. What had
// several lines, such as the last words of an agent, becomes one.
func clean(s string) string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", " / ")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}
