package dataset

import (
	"context"
	"math"
	"slices"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// Delays are the messages of one workload in a series, repetition by repetition:
// those that became ready in the measured interval, while their flow was meant to
// run.
type Delays struct {
	Workload string
	Flows    int // over all repetitions
	Reps     []RepDelays
}

// RepDelays are the messages of one repetition.
type RepDelays struct {
	Repetition int
	Delivered  []float64 // delays in seconds, ascending
	Lost       int       // not delivered by the end of the run
	Speech     *Speech   // of flows of speech; nil without any
}

// Speech is how a listener would judge a repetition's flows of speech: the medians
// over them. A value is NaN where it is not known.
type Speech struct {
	Flows       int
	RFactor     float64 // 0 to 100
	MOS         float64 // 1 to 4.5
	MouthToEarS float64
	// LateShare and LostShare are of the packets that were to be played: too late for
	// the playout buffer, and never arrived.
	LateShare, LostShare float64
}

// Messages counts the messages.
func (d *Delays) Messages() (n, lost int) {
	for i := range d.Reps {
		n += len(d.Reps[i].Delivered) + d.Reps[i].Lost
		lost += d.Reps[i].Lost
	}
	return n, lost
}

// Quantile is the median over the repetitions of a quantile of the delays of the
// delivered messages, in seconds. A repetition in which nothing was delivered has
// an infinite one.
func (d *Delays) Quantile(p float64, seed uint64) stats.Estimate {
	return d.median(seed, func(r *RepDelays) float64 {
		switch {
		case len(r.Delivered) > 0:
			return stats.Quantile(r.Delivered, p)
		case r.Lost > 0:
			return math.Inf(1)
		}
		return math.NaN()
	})
}

// LostShare is the median over the repetitions of the share of the messages that
// were not delivered.
func (d *Delays) LostShare(seed uint64) stats.Estimate {
	return d.median(seed, func(r *RepDelays) float64 { return float64(r.Lost) / float64(r.Lost+len(r.Delivered)) })
}

// OfSpeech is the median over the repetitions of something of speech.
func (d *Delays) OfSpeech(seed uint64, of func(*Speech) float64) stats.Estimate {
	return d.median(seed, func(r *RepDelays) float64 {
		if r.Speech == nil {
			return math.NaN()
		}
		return of(r.Speech)
	})
}

// HasSpeech tells that some repetition has flows of speech.
func (d *Delays) HasSpeech() bool {
	return slices.ContainsFunc(d.Reps, func(r RepDelays) bool { return r.Speech != nil })
}

// median is the median over the repetitions that have a value.
func (d *Delays) median(seed uint64, of func(*RepDelays) float64) stats.Estimate {
	var values []float64
	for i := range d.Reps {
		if v := of(&d.Reps[i]); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return stats.Bootstrap(len(values), seed, func(reps []int) float64 {
		x := make([]float64, len(reps))
		for i, r := range reps {
			x[i] = values[r]
		}
		return stats.Median(x)
	})
}

// DelaysOf reads the messages of a series by workload, in the order of its name;
// none for a series without messages.
func (s *Set) DelaysOf(ctx context.Context, ser *Series) ([]Delays, error) {
	by := map[string]*Delays{}
	var names []string
	for i := range ser.Reps {
		rep := &ser.Reps[i]
		type place struct {
			r        *RepDelays
			from, to int64 // µs
		}
		places := map[int]place{}
		own := map[string]*RepDelays{}
		for j := range rep.Flows {
			f := &rep.Flows[j]
			if !f.Messages.OK {
				continue
			}
			d := by[f.Workload]
			if d == nil {
				d = &Delays{Workload: f.Workload}
				by[f.Workload] = d
				names = append(names, f.Workload)
			}
			d.Flows++
			if own[f.Workload] == nil {
				own[f.Workload] = &RepDelays{Repetition: rep.Run.Repetition, Speech: speechOf(rep.Flows, f.Workload)}
			}
			from, to := measuredPart(&rep.Run, f)
			places[f.Flow] = place{own[f.Workload], int64(math.Round(from * 1e6)), int64(math.Round(to * 1e6))}
		}
		if len(places) == 0 {
			continue
		}
		err := s.st.Messages(ctx, rep.Run.ID, func(m *store.Message) error {
			p, ok := places[m.Flow]
			switch {
			case !ok || m.ReadyUs < p.from || m.ReadyUs >= p.to:
			case m.DelayUs.OK:
				p.r.Delivered = append(p.r.Delivered, float64(m.DelayUs.V)/1e6)
			default:
				p.r.Lost++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for name, r := range own {
			slices.Sort(r.Delivered)
			by[name].Reps = append(by[name].Reps, *r)
		}
	}
	slices.Sort(names)
	var out []Delays
	for _, name := range names {
		out = append(out, *by[name])
	}
	return out, nil
}

// measuredPart is the part of the measured interval in which a flow is meant to
// run, in seconds.
func measuredPart(r *store.Run, f *store.Flow) (from, to float64) {
	from, to = math.Max(r.WarmupS, f.StartS), r.WarmupS+r.DurationS
	if f.StopS > 0 {
		to = math.Min(to, f.StopS)
	}
	return from, to
}

// speechOf judges a repetition's flows of speech of a workload; nil without any.
func speechOf(flows []store.Flow, workload string) *Speech {
	var r, mos, ear []float64
	var late, lost, all float64
	s := &Speech{}
	for i := range flows {
		f := &flows[i]
		if f.Workload != workload || !f.RFactor.OK {
			continue
		}
		s.Flows++
		r, mos = append(r, f.RFactor.V), append(mos, f.MOS.V)
		if us, ok := f.Counters["voice_mouth_to_ear_us"]; ok {
			ear = append(ear, float64(us)/1e6)
		}
		late += float64(f.Counters["voice_late"])
		lost += float64(f.Counters["voice_lost"])
		all += float64(f.Counters["voice_late"] + f.Counters["voice_lost"] + f.Counters["voice_played"])
	}
	if s.Flows == 0 {
		return nil
	}
	s.RFactor, s.MOS, s.MouthToEarS = stats.Median(r), stats.Median(mos), stats.Median(ear)
	s.LateShare, s.LostShare = late/all, lost/all
	return s
}
