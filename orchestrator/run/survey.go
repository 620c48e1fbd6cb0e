package run

import (
	"context"
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/linkprobe"
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// SurveyInfo names a measurement of links for people.
type SurveyInfo struct {
	Number, Total int    // from 1
	Label         string // of the first run that meets the network
	Repetition    int
	Attempt       int // from 1
	Nodes, Probes int
	Length        time.Duration
}

// SurveyOutcome is what a measurement of links found.
type SurveyOutcome struct {
	Links, Usable, OneWay int // pairs of nodes
	MeanETX               float64
	Stored                bool // it is of an earlier invocation of the campaign
}

// SurveyObserver is implemented by observers that follow measurements of links as
// well. They come after CampaignStarted and before the first run.
type SurveyObserver interface {
	SurveyStarted(SurveyInfo)
	SurveyProgress(phase string, at, length vtime.Duration)
	SurveyDone(SurveyInfo, SurveyOutcome)
}

// unseen follows measurements for observers that do not.
type unseen struct{}

func (unseen) SurveyStarted(SurveyInfo)                              {}
func (unseen) SurveyProgress(string, vtime.Duration, vtime.Duration) {}
func (unseen) SurveyDone(SurveyInfo, SurveyOutcome)                  {}

// DescribeSurvey names the measurement of a network, as the first attempt.
func DescribeSurvey(n plan.Network, number, total int) SurveyInfo {
	c := n.Run.Config()
	return SurveyInfo{Number: number, Total: total, Label: n.Run.Label(), Repetition: n.Run.Repetition, Attempt: 1,
		Nodes: len(c.Topology.AllNodes()), Probes: c.Routing.Probes, Length: surveySpan(n.Run).Std()}
}

// surveySpan is how long one measurement takes on the run's clock.
func surveySpan(r plan.Run) vtime.Duration {
	c := r.Config().Routing
	return linkprobe.Span(c.Probes, c.Period) + backend.ProbeTail
}

// surveyTime estimates the wall time of the measurements that a plan wants.
func surveyTime(b backend.Backend, p *plan.Plan) time.Duration {
	var d time.Duration
	for _, n := range p.Surveys() {
		d += time.Duration(float64(surveySpan(n.Run).Std())/b.Speed()) + b.Overhead()
	}
	return d
}

// survey gives the plan the links of its networks, before the first run: those that
// the campaign has already, and what is measured now and kept with it. It lays out
// every run, so that a network on which some flow has no route ends the campaign
// here and not in its third repetition.
func survey(ctx context.Context, o Options, c *store.Campaign) (*plan.Plan, error) {
	networks := o.Plan.Surveys()
	if len(networks) == 0 {
		return o.Plan, nil
	}
	prober, ok := o.Backend.(backend.Prober)
	if !ok {
		return nil, &backend.ErrUnsupported{Backend: o.Backend.Name(), What: "routing.kind: measured", Because: "it cannot measure links", Do: "use routing.kind: static"}
	}
	follow, ok := o.Observe.(SurveyObserver)
	if !ok {
		follow = unseen{}
	}
	links, err := stored(ctx, o.Store, c.ID)
	if err != nil {
		return nil, err
	}
	for i, n := range networks {
		info := DescribeSurvey(n, i+1, len(networks))
		_, have := links[n.Key]
		if !have {
			if links[n.Key], err = measure(ctx, o, c, prober, follow, n, &info); err != nil {
				return nil, fmt.Errorf("links of the network of %s, repetition %d: %w", n.Run.Label(), n.Run.Repetition, err)
			}
		}
		out, err := SumUp(n.Run, links[n.Key])
		if err != nil {
			return nil, err
		}
		out.Stored = have
		follow.SurveyDone(info, out)
	}
	p := o.Plan.WithLinks(links)
	for _, r := range p.Runs {
		s, err := r.Scenario()
		if err == nil {
			err = o.Files.Fits(s)
		}
		if err != nil {
			return nil, fmt.Errorf("over the measured links: %w%s", err, likeData(r))
		}
	}
	return p, nil
}

// likeData is what to try where routes over measured links are not those that the
// file's author had in mind: short, slow probes arrive over links that data does not
// pass, so that routes are shorter than the model's.
func likeData(r plan.Run) string {
	c := r.Config()
	if c.Routing.Size >= topology.DataFrame && c.ProbeRate() >= c.Radio.Rate {
		return ""
	}
	return fmt.Sprintf(" (the probes were of %v at %v, and get farther than data: routing.size: %v and routing.rate: %v measure what data meets)",
		c.Routing.Size, c.ProbeRate(), topology.DataFrame, c.Radio.Rate)
}

// stored are the surveys of a campaign that is resumed.
func stored(ctx context.Context, st *store.Store, campaign int64) (map[string]*etx.Survey, error) {
	rows, err := st.Surveys(ctx, campaign)
	if err != nil {
		return nil, err
	}
	out := map[string]*etx.Survey{}
	for i := range rows {
		v := &rows[i]
		s := &etx.Survey{Nodes: len(v.Nodes), Probes: v.Probes, Mute: v.Mute}
		for _, l := range v.Links {
			lost, err := l.LostProbes()
			if err != nil {
				return nil, err
			}
			s.Heard = append(s.Heard, etx.Heard{From: l.Src, To: l.Dst, Received: l.Received, Lost: lost})
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("survey %d of campaign %d in %s: %w", v.Survey, campaign, st.Path(), err)
		}
		out[v.Network] = s
	}
	return out, nil
}

// measure measures one network, again where the host spoiled it, and keeps it.
func measure(ctx context.Context, o Options, c *store.Campaign, prober backend.Prober, follow SurveyObserver, n plan.Network, info *SurveyInfo) (*etx.Survey, error) {
	s, err := n.Run.Probing()
	if err != nil {
		return nil, err
	}
	for {
		follow.SurveyStarted(*info)
		started := time.Now()
		got, err := prober.Probe(ctx, s, follow.SurveyProgress)
		if err == nil {
			return got, keep(o.Store, c, s, n, started, got)
		}
		if ctx.Err() != nil || backend.IsFatal(err) || backend.IsPermanent(err) || info.Attempt > s.Config().Limits.Reruns {
			return nil, err
		}
		o.Observe.Warn(fmt.Sprintf("the links are measured again: %v", err))
		info.Attempt++
	}
}

// keep stores a survey even when the user has asked to stop: it is finished.
func keep(st *store.Store, c *store.Campaign, s *plan.Scenario, n plan.Network, started time.Time, got *etx.Survey) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v := &store.Survey{CampaignID: c.ID, Network: n.Key, Repetition: n.Run.Repetition, Started: store.StampOf(started), Mute: got.Mute,
		Probes: got.Probes, PeriodS: s.Config().Routing.Period.Seconds(), Size: int64(s.Config().Routing.Size), Rate: int64(s.Config().ProbeRate())}
	v.Params = store.Params{}
	for _, q := range n.Run.Point.Params {
		v.Params[q.Name] = q.Value
	}
	for _, nd := range s.Topology.Nodes {
		v.Nodes = append(v.Nodes, nd.Name)
	}
	for _, h := range got.Heard {
		v.Links = append(v.Links, store.SurveyLink{Src: h.From, Dst: h.To, Received: h.Received, Lost: store.LostOf(h.Lost)})
	}
	if err := st.SaveSurvey(ctx, v); err != nil {
		return fmt.Errorf("links that were measured could not be stored: %w", err)
	}
	return nil
}

// SumUp counts what a survey found, as a run's Config rates it.
func SumUp(r plan.Run, s *etx.Survey) (SurveyOutcome, error) {
	pairs, err := plan.Rate(r.Config(), s)
	if err != nil {
		return SurveyOutcome{}, err
	}
	out := SurveyOutcome{Links: len(pairs)}
	for i := range pairs {
		switch p := &pairs[i]; {
		case p.OneWay():
			out.OneWay++
		case p.Usable:
			out.Usable++
			out.MeanETX += p.ETX
		}
	}
	if out.Usable > 0 {
		out.MeanETX /= float64(out.Usable)
	}
	return out, nil
}
