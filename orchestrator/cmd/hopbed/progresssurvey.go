package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/run"
)

var (
	_ run.SurveyObserver = (*lineObserver)(nil)
	_ run.SurveyObserver = (*barObserver)(nil)
	_ run.SurveyObserver = (*jsonObserver)(nil)
)

func (o *lineObserver) SurveyStarted(s run.SurveyInfo) {
	o.phase = ""
	again := ""
	if s.Attempt > 1 {
		again = fmt.Sprintf(", attempt %d", s.Attempt)
	}
	fmt.Fprintf(o.w, "links %d/%d: %s%s, %d probes of each of %d nodes, %s\n", s.Number, s.Total, surveyName(s), again, s.Probes, s.Nodes, roundTime(s.Length))
}

func surveyName(s run.SurveyInfo) string {
	return fmt.Sprintf("the network of %s, repetition %d", clean(s.Label), s.Repetition)
}

func (o *lineObserver) SurveyProgress(phase string, at, length vtime.Duration) {
	o.RunProgress(phase, at, length)
}

func (o *lineObserver) SurveyDone(s run.SurveyInfo, out run.SurveyOutcome) {
	if out.Stored {
		fmt.Fprintf(o.w, "links %d/%d: %s, as measured before\n", s.Number, s.Total, surveyName(s))
	}
	fmt.Fprintf(o.w, "  %s\n", surveyLine(out))
}

// surveyLine sums a measurement of links up.
func surveyLine(out run.SurveyOutcome) string {
	text := fmt.Sprintf("%d pairs of nodes heard probes: %d usable links", out.Links, out.Usable)
	if out.Usable > 0 {
		text += fmt.Sprintf(" with a mean ETX of %.2f", out.MeanETX)
	}
	if weak := out.Links - out.Usable - out.OneWay; weak > 0 {
		text += fmt.Sprintf(", %d too weak", weak)
	}
	if out.OneWay > 0 {
		text += fmt.Sprintf(", %d one-way", out.OneWay)
	}
	return text
}

func (o *barObserver) SurveyStarted(s run.SurveyInfo) {
	o.survey = progressbar.NewOptions64(max(1, int64(s.Length)),
		progressbar.OptionSetWriter(o.w), progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true))
	o.survey.Describe(fmt.Sprintf("links %d/%d", s.Number, s.Total))
}

func (o *barObserver) SurveyProgress(phase string, at, length vtime.Duration) {
	o.survey.Describe(phase)
	if length > 0 {
		o.survey.Set64(min(int64(at), o.survey.GetMax64()-1))
	}
}

func (o *barObserver) SurveyDone(s run.SurveyInfo, out run.SurveyOutcome) {
	if o.survey != nil {
		o.survey.Clear()
		o.survey = nil
	}
	if !out.Stored {
		fmt.Fprintf(o.w, "links %d/%d: %s\n", s.Number, s.Total, surveyName(s))
	}
	o.lines.SurveyDone(s, out)
}

func (o *jsonObserver) survey(s run.SurveyInfo) map[string]any {
	return map[string]any{"survey": s.Number, "total": s.Total, "label": s.Label, "repetition": s.Repetition, "attempt": s.Attempt,
		"nodes": s.Nodes, "probes": s.Probes, "length_s": s.Length.Seconds(), "backend": o.backend}
}

func (o *jsonObserver) SurveyStarted(s run.SurveyInfo) { o.emit("survey", o.survey(s)) }

func (o *jsonObserver) SurveyProgress(phase string, at, length vtime.Duration) {
	o.RunProgress(phase, at, length)
}

func (o *jsonObserver) SurveyDone(s run.SurveyInfo, out run.SurveyOutcome) {
	d := o.survey(s)
	d["links"], d["usable"], d["one_way"], d["mean_etx"], d["stored"] = out.Links, out.Usable, out.OneWay, out.MeanETX, out.Stored
	o.emit("surveyed", d)
}
