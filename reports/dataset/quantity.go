package dataset

import (
	"context"
	"math"
	"strings"

	"github.com/hopbed/hopbed/reports/stats"
)

// Quantity is something by which two sides of a comparison are compared.
type Quantity string

// The quantities. Each has one value in a repetition.
const (
	QuantityGoodput        Quantity = "goodput"             // of all flows over the measured interval, b/s
	QuantityCompletionTime Quantity = "completion_time"     // mean over sized flows, s
	QuantityRetransmitted  Quantity = "retransmitted_share" // of the bytes that the sources sent, sums over flows
	QuantityRTT            Quantity = "rtt"                 // mean of the sources' smoothed round-trip times, s
	QuantityTimeouts       Quantity = "timeouts"            // retransmission time-outs per flow and minute
	QuantityFrames         Quantity = "data_frames"         // Hop's, of all nodes, repeats included
	QuantityJainIndex      Quantity = "jain"                // over the flows' goodputs
	QuantityMessagesLost   Quantity = "messages_lost"       // share of the messages that were not delivered
	QuantityRFactor        Quantity = "r_factor"            // median over the flows of speech
)

// MessageWorkloads are the workloads whose messages have delays: what a message is
// differs, so that each is compared by itself.
var MessageWorkloads = []string{"poisson", "trace", "voip", "web"}

// QuantityDelayMedian and QuantityDelayTail are the median and the 95 % quantile of
// the delays of a workload's delivered messages, s.
func QuantityDelayMedian(workload string) Quantity { return Quantity("delay_p50_" + workload) }

// QuantityDelayTail: see QuantityDelayMedian.
func QuantityDelayTail(workload string) Quantity { return Quantity("delay_p95_" + workload) }

// segmentBytes turns repeated bytes into segments, on which a ratio's error
// depends: the payload of a full segment without options over Ethernet's MTU.
const segmentBytes = 1460

// repValues are the quantities of one repetition; NaN is a value that is not
// there.
type repValues struct {
	goodput, completion, retrans, rtt, timeouts, frames, jain float64
	messagesLost, rFactor                                     float64

	delays map[string][2]float64 // median and 95 % quantile by workload

	segmentsAgain, minuteTimeouts count
}

// count is a number of events and what they are counted over.
type count struct{ events, exposure float64 }

// compared is one line of the table of what is compared.
type compared struct {
	quantity   Quantity
	value      func(*repValues) float64
	count      func(*repValues) count // nil where the value is no count
	ratio      bool
	difference bool
}

// quantities is the table of what is compared.
var quantities = append(append([]compared{
	{QuantityGoodput, func(v *repValues) float64 { return v.goodput }, nil, true, false},
	{QuantityCompletionTime, func(v *repValues) float64 { return v.completion }, nil, true, false},
	{QuantityRetransmitted, func(v *repValues) float64 { return v.retrans }, func(v *repValues) count { return v.segmentsAgain }, true, false},
	{QuantityRTT, func(v *repValues) float64 { return v.rtt }, nil, true, false},
	{QuantityTimeouts, func(v *repValues) float64 { return v.timeouts }, func(v *repValues) count { return v.minuteTimeouts }, true, true},
	{QuantityFrames, func(v *repValues) float64 { return v.frames }, nil, true, false},
	{QuantityJainIndex, func(v *repValues) float64 { return v.jain }, nil, false, true},
}, delayQuantities()...), []compared{
	{QuantityMessagesLost, func(v *repValues) float64 { return v.messagesLost }, nil, false, true},
	{QuantityRFactor, func(v *repValues) float64 { return v.rFactor }, nil, false, true},
}...)

func delayQuantities() (out []compared) {
	of := func(workload string, i int) func(*repValues) float64 {
		return func(v *repValues) float64 {
			if d, ok := v.delays[workload]; ok {
				return d[i]
			}
			return math.NaN()
		}
	}
	for _, w := range MessageWorkloads {
		out = append(out, compared{QuantityDelayMedian(w), of(w, 0), nil, true, false}, compared{QuantityDelayTail(w), of(w, 1), nil, true, false})
	}
	return out
}

// hasTCP tells transports whose sources report what TCP reports of itself.
func hasTCP(transport string) bool {
	family, _, _ := strings.Cut(transport, "/")
	return family == "tcp" || family == "coop-tcp" || family == "hop-by-hop-tcp" || family == "bundle"
}

// measure takes the quantities of a repetition.
func (s *Set) measure(ctx context.Context, transport string, r *Rep) (*repValues, error) {
	nan := math.NaN()
	v := &repValues{goodput: nan, completion: nan, retrans: nan, rtt: nan, timeouts: nan, frames: nan, jain: nan, messagesLost: nan, rFactor: nan}
	if len(r.Flows) == 0 {
		return v, nil
	}
	if err := s.messages(ctx, r, v); err != nil {
		return nil, err
	}
	var times []float64
	var sent, again float64
	for i := range r.Flows {
		f := &r.Flows[i]
		end := f.StopS
		if f.Size.OK {
			t, _ := CompletionTime(&r.Run, f)
			times = append(times, t)
			end = f.StartS + t
		}
		if f.SentBytes.OK && f.RetransBytes.OK {
			sent += float64(f.SentBytes.V)
			again += float64(f.RetransBytes.V)
		}
		if f.Timeouts.OK {
			v.minuteTimeouts.events += float64(f.Timeouts.V)
			v.minuteTimeouts.exposure += math.Max(0, end-f.StartS) / 60
		}
	}
	if r.Sized {
		v.completion = stats.Mean(times)
	} else {
		v.goodput = stats.Sum(r.Aggregates())
		if len(r.Flows) > 1 {
			v.jain = stats.Jain(r.Goodputs())
		}
	}
	if !hasTCP(transport) {
		return v, s.frames(ctx, r, v)
	}
	if sent > 0 {
		v.retrans = again / sent
		v.segmentsAgain = count{math.Ceil(again / segmentBytes), sent / segmentBytes}
	}
	if c := v.minuteTimeouts; c.exposure > 0 {
		v.timeouts = c.events / c.exposure
	}
	rtt, err := s.st.SourceRTTs(ctx, &r.Run)
	if err != nil {
		return nil, err
	}
	var all []float64
	for i := range r.Flows {
		if us, ok := rtt[r.Flows[i].Flow]; ok {
			all = append(all, us/1e6)
		}
	}
	v.rtt = stats.Mean(all)
	return v, nil
}

// messages takes what a repetition's messages of all workloads say.
func (s *Set) messages(ctx context.Context, r *Rep, v *repValues) error {
	all, err := s.DelaysOf(ctx, &Series{Reps: []Rep{*r}})
	if err != nil {
		return err
	}
	var speech []float64
	n, lost := 0, 0
	v.delays = map[string][2]float64{}
	for i := range all {
		for _, d := range all[i].Reps {
			n, lost = n+len(d.Delivered)+d.Lost, lost+d.Lost
			if len(d.Delivered) > 0 {
				v.delays[all[i].Workload] = [2]float64{stats.Quantile(d.Delivered, 0.5), stats.Quantile(d.Delivered, 0.95)}
			}
			if d.Speech != nil {
				speech = append(speech, d.Speech.RFactor)
			}
		}
	}
	if n > 0 {
		v.messagesLost = float64(lost) / float64(n)
	}
	if len(speech) > 0 {
		v.rFactor = stats.Median(speech)
	}
	return nil
}

// frames sums up the data frames that the repetition's flows made nodes send.
func (s *Set) frames(ctx context.Context, r *Rep, v *repValues) error {
	sent, err := s.st.DataFrames(ctx, r.Run.ID)
	if err != nil {
		return err
	}
	var sum int64
	for i := range r.Flows {
		sum += sent[r.Flows[i].Flow]
	}
	if sum > 0 {
		v.frames = float64(sum)
	}
	return nil
}

// Quantities returns all, in the order in which they are shown.
func Quantities() []Quantity {
	var out []Quantity
	for _, q := range quantities {
		out = append(out, q.quantity)
	}
	return out
}
