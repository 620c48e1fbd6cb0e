package render

import (
	"encoding/json"
	"io"
	"math"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// jsonFormat is the version of the JSON report; it grows when the meaning of a
// field changes.
const jsonFormat = 2

// number is a float64 that JSON may not be able to hold: NaN and the infinities
// become null.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

type jsonReport struct {
	Format      int              `json:"format"`
	Title       string           `json:"title"`
	Version     string           `json:"hopbed_version"`
	Pack        *jsonPack        `json:"pack"` // the verdicts of a paper's statements; null for others
	Comparisons []jsonComparison `json:"comparisons"`
	Campaigns   []jsonCampaign   `json:"campaigns"`
}

type jsonCampaign struct {
	ID          int64            `json:"id"`
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Backend     string           `json:"backend"`
	Seed        string           `json:"seed"` // decimal text: it may use 64 bits
	Quick       bool             `json:"quick"`
	Status      string           `json:"status"`
	Planned     int64            `json:"planned_runs"`
	Reference   string           `json:"reference"`
	Created     string           `json:"created_utc"`
	Finished    string           `json:"finished_utc"`
	Version     string           `json:"hopbed_version"`
	HostFacts   store.Facts      `json:"host_facts"`
	FileSHA256  string           `json:"file_sha256"`
	FileText    string           `json:"file_text"`
	Warnings    []string         `json:"warnings"`
	Validity    string           `json:"validity"` // how many runs of the plan count
	AllValid    bool             `json:"all_valid"`
	Meaning     string           `json:"backend_meaning"` // what its numbers are numbers of
	Groups      []jsonGroup      `json:"groups"`
	Claims      []jsonClaim      `json:"claims"`  // published figures beside ours
	Figures     []jsonFigureName `json:"figures"` // over all groups
	Runs        []jsonRun        `json:"runs"`
	Definitions json.RawMessage  `json:"definitions"`
}

type jsonGroup struct {
	Backend string `json:"backend"`
	// "goodput", or "completion_time" when all flows are sized: then medians by
	// hop count are in seconds and ratios those of the baseline's time to the
	// transport's.
	Measure    string           `json:"measure"`
	Mixed      bool             `json:"transports_shared_the_channel"` // then there is no ratio
	Condition  store.Params     `json:"condition"`
	Baseline   string           `json:"baseline"`
	Transports []jsonTransport  `json:"transports"`
	Ratios     []jsonRatios     `json:"ratios"`
	Hops       []jsonHops       `json:"by_hops"`
	Delays     []jsonDelays     `json:"messages"`
	Airtime    []jsonAirtime    `json:"airtime"`
	Pipes      []jsonPipe       `json:"pipes"`
	Figures    []jsonFigureName `json:"figures"`
}

type jsonTransport struct {
	Transport    string `json:"transport"`
	Runs         int    `json:"runs"`
	LeftOut      int    `json:"repetitions_left_out"`
	Flows        int    `json:"flows"`
	Min          number `json:"min_bps"`
	Q1           number `json:"q1_bps"`
	Median       number `json:"median_bps"`
	Q3           number `json:"q3_bps"`
	Max          number `json:"max_bps"`
	Mean         number `json:"mean_bps"`
	Aggregate    number `json:"aggregate_bps"`
	Jain         number `json:"jain"`
	StarvedShare number `json:"starved_share"`
	RetransShare number `json:"retrans_share"`
	Setup        number `json:"setup_median_s"`

	Completion *jsonCompletion `json:"completion"` // of sized flows only, else null
	// The median flow of each repetition, and the sum over its flows: quartiles
	// over repetitions, in b/s, or in s (and no sum) where all flows are sized.
	MedianFlow [3]number  `json:"median_flow_quartiles"`
	Sum        *[3]number `json:"aggregate_quartiles"`

	Corrupt store.Opt[int64] `json:"corrupt_blocks"`
}

// jsonCompletion describes sized flows; those that had not completed count with
// the time until the end of their run.
type jsonCompletion struct {
	Flows  int    `json:"flows"`
	Done   int    `json:"completed"`
	Q1     number `json:"q1_s"`
	Median number `json:"median_s"`
	Q3     number `json:"q3_s"`
	// The quartile rests on flows that had not completed: it is at least this.
	AtLeast [3]bool `json:"at_least"`
}

func completion(c *dataset.Completion) *jsonCompletion {
	if c == nil {
		return nil
	}
	return &jsonCompletion{c.Flows, c.Done, number(c.Times.Q1), number(c.Times.Median), number(c.Times.Q3), c.AtLeast}
}

type jsonEstimate struct {
	Value    number     `json:"value"`
	Interval *[2]number `json:"interval"` // 95 %; a bound that is not finite is null
	N        int        `json:"repetitions"`
	Warnings []string   `json:"warnings"`
}

type jsonRatios struct {
	Transport     string       `json:"transport"`
	Baseline      string       `json:"baseline"`
	Q1            jsonEstimate `json:"q1"`
	Median        jsonEstimate `json:"median"`
	Q3            jsonEstimate `json:"q3"`
	Mean          jsonEstimate `json:"mean"`
	Aggregate     jsonEstimate `json:"aggregate"`
	PerRepetition jsonEstimate `json:"median_of_repetitions"`
	// "at least", "at most" or "not known" for ratios of completion times that
	// rest on flows that had not completed, of q1, median, q3, and of the median
	// of repetitions; else "".
	Bounds        [4]dataset.Bound  `json:"bounds"`
	Each          []number          `json:"each_repetition"`
	Distributions jsonDistributions `json:"distributions"`
	Warnings      []string          `json:"warnings"`
}

type jsonHops struct {
	Hops      int     `json:"hops"`
	Transport string  `json:"transport"`
	Flows     int     `json:"flows"`
	Median    *number `json:"median_bps"` // null for sized flows
	MedianS   *number `json:"median_s"`   // null for others
	// "at least", "at most" or "not known", as in ratios.
	Bound dataset.Bound `json:"gain_bound"`
	Gain  *jsonEstimate `json:"gain"` // null for the baseline itself
}

type jsonFigureName struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type jsonRun struct {
	ID         int64              `json:"id"`
	Backend    string             `json:"backend"`
	Repetition int                `json:"repetition"`
	Seed       string             `json:"seed"`
	Params     store.Params       `json:"params"`
	Transport  string             `json:"transport"`
	Attempt    int                `json:"attempt"`
	Status     store.RunStatus    `json:"status"`
	Valid      bool               `json:"valid"`
	Reasons    store.Strings      `json:"invalid_reasons"`
	Warnings   store.Strings      `json:"warnings"`
	Error      string             `json:"error"`
	TraceHash  string             `json:"trace_hash"`
	WarmupS    number             `json:"warmup_s"`
	DurationS  number             `json:"duration_s"`
	WallS      number             `json:"wall_s"`
	P50        store.Opt[float64] `json:"lateness_p50_us"`
	P99        store.Opt[float64] `json:"lateness_p99_us"`
	Max        store.Opt[float64] `json:"lateness_max_us"`
	LateShare  store.Opt[float64] `json:"late_share"`
	CPUS       store.Opt[float64] `json:"cpu_s"`
}

func estimate(e stats.Estimate) jsonEstimate {
	return jsonEstimate{Value: number(e.Value), Interval: bounds(e), N: e.N, Warnings: list(e.Warnings)}
}

func bounds(e stats.Estimate) *[2]number {
	if !e.HasInterval {
		return nil
	}
	return &[2]number{number(e.Lo), number(e.Hi)}
}

// list makes an empty list [] rather than null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	out := jsonReport{Format: jsonFormat, Title: r.Title, Version: r.Version, Pack: packJSON(r.Pack), Comparisons: []jsonComparison{}, Campaigns: []jsonCampaign{}}
	for i := range r.Comparisons {
		out.Comparisons = append(out.Comparisons, r.Comparisons[i].json())
	}
	for i := range r.Sections {
		c, err := r.Sections[i].json()
		if err != nil {
			return err
		}
		out.Campaigns = append(out.Campaigns, c)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// warnings are those of the campaign, with how it ended when it is not complete.
func (s *Section) warnings() []string {
	w := append([]string(nil), s.Set.Warnings...)
	if e := s.Set.Ending(); e != "" {
		w = append(w, e)
	}
	return w
}

func (s *Section) json() (jsonCampaign, error) {
	c := &s.Set.Campaign
	defs := map[string]string{}
	for _, d := range definitionsWith(s.hasMessages()) {
		defs[d.Term] = d.Text
	}
	raw, err := json.Marshal(defs)
	if err != nil {
		return jsonCampaign{}, err
	}
	out := jsonCampaign{
		ID: c.ID, Name: c.Name, Title: s.title(), Backend: c.Backend, Seed: formatSeed(c.Seed), Quick: c.Quick, Status: string(c.Status), Planned: c.Planned,
		Reference: c.Reference, Created: c.Created.String(), Finished: c.Finished.String(), Version: c.Version, HostFacts: c.HostFacts,
		FileSHA256: c.FileSHA256, FileText: c.FileText, Warnings: list(s.warnings()), Definitions: raw, Groups: []jsonGroup{}, Claims: []jsonClaim{}, Figures: []jsonFigureName{}, Runs: []jsonRun{},
	}
	out.Validity, out.AllValid = s.validity()
	out.Meaning = dataset.BackendMeaning(c.Backend)
	for i := range s.Groups {
		out.Groups = append(out.Groups, s.Groups[i].json())
	}
	for i := range s.Claims {
		out.Claims = append(out.Claims, claimJSON(&s.Claims[i]))
	}
	for _, f := range s.Figures {
		out.Figures = append(out.Figures, jsonFigureName{f.ID, f.Title})
	}
	for i := range s.Set.Runs {
		r := &s.Set.Runs[i]
		out.Runs = append(out.Runs, jsonRun{
			ID: r.ID, Backend: r.Backend, Repetition: r.Repetition, Seed: formatSeed(r.Seed), Params: r.Params, Transport: r.Transport, Attempt: r.Attempt, Status: r.Status, Valid: r.Valid,
			Reasons: r.InvalidReasons, Warnings: r.Warnings, Error: r.Error, TraceHash: r.TraceHash, WarmupS: number(r.WarmupS), DurationS: number(r.DurationS), WallS: number(r.WallS),
			P50: r.LatenessP50Us, P99: r.LatenessP99Us, Max: r.LatenessMaxUs, LateShare: r.LateShare, CPUS: r.CPUS,
		})
	}
	return out, nil
}

func (g *Group) json() jsonGroup {
	out := jsonGroup{Backend: g.Data.Backend, Condition: g.Data.Condition, Baseline: g.Baseline, Measure: "goodput", Mixed: g.Data.Mixed,
		Transports: []jsonTransport{}, Ratios: []jsonRatios{}, Hops: []jsonHops{}, Delays: []jsonDelays{}, Airtime: []jsonAirtime{}, Pipes: []jsonPipe{}, Figures: []jsonFigureName{}}
	if g.Data.Sized {
		out.Measure = "completion_time"
	}
	for i, s := range g.Summary {
		over := g.Data.Series[i].SummariseReps()
		if g.Data.Sized { // their goodput says nothing: see completion
			s.Goodput, s.AggregateBps, s.Jain, s.StarvedShare = stats.Summarise(nil), math.NaN(), math.NaN(), math.NaN()
		}
		out.Transports = append(out.Transports, jsonTransport{s.Transport, s.Runs, s.LeftOut, s.Flows,
			number(s.Goodput.Min), number(s.Goodput.Q1), number(s.Goodput.Median), number(s.Goodput.Q3), number(s.Goodput.Max), number(s.Goodput.Mean),
			number(s.AggregateBps), number(s.Jain), number(s.StarvedShare), number(s.RetransShare), number(s.SetupS), completion(s.Completion), quartiles(over.Flow), nil, s.CorruptBlocks})
		if !g.Data.Sized {
			sum := quartiles(over.Aggregate)
			out.Transports[i].Sum = &sum
		}
	}
	for _, r := range g.Ratios {
		j := jsonRatios{r.Transport, r.Baseline, estimate(r.Q1), estimate(r.Median), estimate(r.Q3), estimate(r.Mean), estimate(r.Aggregate), estimate(r.PerRepetition), [4]dataset.Bound{r.Bounds[0], r.Bounds[1], r.Bounds[2], r.PerRepetitionBound}, []number{}, distributionsJSON(&r.Distributions), list(r.Warnings)}
		for _, v := range r.Each {
			j.Each = append(j.Each, number(v))
		}
		out.Ratios = append(out.Ratios, j)
	}
	for _, row := range g.Hops {
		for _, c := range row.Cells {
			h := jsonHops{Hops: row.Hops, Transport: c.Transport, Flows: c.Values.N, Bound: c.Bound}
			median := number(c.Values.Median)
			if g.Data.Sized {
				h.MedianS = &median
			} else {
				h.Median = &median
			}
			if g.Baseline != "" && c.Transport != g.Baseline {
				e := estimate(c.Gain)
				h.Gain = &e
			}
			out.Hops = append(out.Hops, h)
		}
	}
	g.delaysJSON(&out)
	g.networkJSON(&out)
	for _, f := range g.allFigures() {
		out.Figures = append(out.Figures, jsonFigureName{f.ID, f.Title})
	}
	return out
}

func quartiles(s stats.Summary) [3]number {
	return [3]number{number(s.Q1), number(s.Median), number(s.Q3)}
}
