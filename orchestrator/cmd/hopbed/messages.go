package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// delay writes a delay for people: three significant digits, "" for none.
func delay(s float64) string {
	switch {
	case math.IsNaN(s):
		return ""
	case math.Abs(s) < 0.9995:
		return fmt.Sprintf("%.3g ms", 1000*s)
	}
	return seconds(s)
}

// showMessages shows the messages of a run's flows: those that became ready in the
// measured interval.
func showMessages(w io.Writer, flows []store.Flow) error {
	if !slices.ContainsFunc(flows, func(f store.Flow) bool { return f.Messages.OK }) {
		return nil
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "flow\tworkload\tmessages\tnot delivered\tdelay: median\tp95\tp99\tR\tMOS\tmouth to ear")
	us := func(o store.Opt[int64]) string {
		if !o.OK {
			return ""
		}
		return delay(float64(o.V) / 1e6)
	}
	for _, f := range flows {
		if !f.Messages.OK {
			continue
		}
		r, mos, ear := "", "", ""
		if f.RFactor.OK {
			r, mos = fmt.Sprintf("%.1f", f.RFactor.V), fmt.Sprintf("%.2f", f.MOS.V)
			if v, ok := f.Counters["voice_mouth_to_ear_us"]; ok {
				ear = (time.Duration(v) * time.Microsecond).Round(time.Millisecond).String()
			}
		}
		fmt.Fprintf(tw, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Flow, clean(f.Workload), f.Messages.V, missed(f.Messages.V, f.MessagesDelivered.V),
			us(f.DelayP50Us), us(f.DelayP95Us), us(f.DelayP99Us), r, mos, ear)
	}
	return tw.Flush()
}

// missed says how many messages were not delivered.
func missed(all, delivered int64) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d (%.3g %%)", all-delivered, 100*float64(all-delivered)/float64(all))
}

// messageRow is one workload of messages of one transport of a point.
type messageRow struct {
	name string
	dataset.MessageSummary
}

// printMessages shows what became of the messages of each point.
func printMessages(w io.Writer, rows []messageRow) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "point\tworkload\tflows\tmessages\tnot delivered\tdelay: median\tp95\tp99\tR\tMOS")
	for _, r := range rows {
		rating, mos := "", ""
		if !math.IsNaN(r.RFactor) {
			rating, mos = fmt.Sprintf("%.1f", r.RFactor), fmt.Sprintf("%.2f", r.MOS)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", clean(r.name), clean(r.Workload), r.Flows, r.Messages, missed(r.Messages, r.Delivered),
			delay(r.Delay[0]), delay(r.Delay[1]), delay(r.Delay[2]), rating, mos)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "Delays, R and MOS are medians over flows; a delay is that of a delivered message.")
	return err
}
