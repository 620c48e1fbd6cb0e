package export

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"time"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// flentVersion is that of flent's data format (flent/resultset.py,
// FILEFORMAT_VERSION).
const flentVersion = 4

// flentTest is the test of flent whose series and plots fit: any number of bulk
// streams in one direction.
const flentTest = "tcp_nup"

// flentData is a file of flent: results at the steps of x_values, and the samples
// that they come from.
type flentData struct {
	Metadata flentMetadata           `json:"metadata"`
	Version  int                     `json:"version"`
	X        []float64               `json:"x_values"` // s since the start of the run
	Results  map[string][]*float64   `json:"results"`  // Mbit/s, null where there is none
	Raw      map[string][]flentPoint `json:"raw_values"`
}

type flentMetadata struct {
	Name       string                 `json:"NAME"`
	Title      string                 `json:"TITLE"`
	Note       string                 `json:"NOTE"`
	Host       string                 `json:"HOST"`
	Hosts      []string               `json:"HOSTS"`
	LocalHost  string                 `json:"LOCAL_HOST"`
	Time       string                 `json:"TIME"`
	T0         string                 `json:"T0"`
	Length     int                    `json:"LENGTH"`       // s
	Total      int                    `json:"TOTAL_LENGTH"` // s
	Step       float64                `json:"STEP_SIZE"`    // s
	Parameters map[string]string      `json:"TEST_PARAMETERS"`
	Series     map[string]flentSeries `json:"SERIES_META"`
	IPVersion  int                    `json:"IP_VERSION"`
	File       string                 `json:"DATA_FILENAME"`
	Written    string                 `json:"HOPBED_VERSION"`
	Backend    string                 `json:"HOPBED_BACKEND"`
	Run        int64                  `json:"HOPBED_RUN"`
}

type flentSeries struct {
	Units   string   `json:"UNITS"`
	Runner  string   `json:"RUNNER"`
	Mean    *float64 `json:"MEAN_VALUE,omitempty"` // goodput of the measured interval
	CC      string   `json:"CONG_CONTROL,omitempty"`
	From    string   `json:"HOPBED_SRC,omitempty"`
	To      string   `json:"HOPBED_DST,omitempty"`
	Carrier string   `json:"HOPBED_TRANSPORT,omitempty"`
}

// flentPoint is a sample: Mbit/s since the sample before, or of the sender its
// congestion window in packets and its round-trip time in ms.
type flentPoint struct {
	T    float64  `json:"t"` // s since 1970
	Val  *float64 `json:"val"`
	Cwnd *float64 `json:"tcp_cwnd,omitempty"`
	RTT  *float64 `json:"tcp_rtt,omitempty"`
}

// flentTime is how flent writes a moment (flent/util.py).
const flentTime = "2006-01-02T15:04:05.000000Z"

// Flent writes the series of one run as a data file of flent, compressed as its
// .flent.gz are: the goodput of every flow that has samples, as "TCP upload::N" of
// flent's test tcp_nup with N from 1, their sum and mean, and as raw values the
// sender's congestion window and round-trip time.
//
// What flent has and a run does not, such as pings, is left out; which flow a
// series is, its transport and the back end stand in the metadata. name is the
// file's.
func Flent(ctx context.Context, st *store.Store, w io.Writer, runID int64, name, version string) error {
	run, err := st.Run(ctx, runID)
	if err != nil {
		return err
	}
	f := store.Filter{RunIDs: []int64{runID}}
	flows, err := st.Flows(ctx, f)
	if err != nil {
		return err
	}
	nodes, err := st.Nodes(ctx, f)
	if err != nil {
		return err
	}
	campaign, err := st.Campaign(ctx, run.CampaignID)
	if err != nil {
		return err
	}
	step := run.SampleS.Or(0)
	if step <= 0 {
		return fmt.Errorf("run %d was carried out without samples: there are no series for flent: hopbed export --table flows has its results", runID)
	}
	names := map[int]string{}
	for _, n := range nodes {
		names[n.Node] = n.Name
	}
	total := run.WarmupS + run.DurationS
	start := run.Started.UTC()
	d := flentData{Version: flentVersion, Results: map[string][]*float64{}, Raw: map[string][]flentPoint{}}
	for i := 1; float64(i)*step <= total+1e-9; i++ {
		d.X = append(d.X, float64(i)*step)
	}
	series, err := flentFlows(ctx, st, run, start)
	if err != nil {
		return err
	}
	meta := map[string]flentSeries{}
	shown := 0
	for i := range flows {
		fl := &flows[i]
		s := series[fl.Flow]
		if s == nil || fl.Role == store.RoleRequests {
			continue
		}
		shown++
		key := fmt.Sprintf("TCP upload::%d", shown)
		d.Results[key], d.Raw[key] = s.at(d.X, step), s.points()
		m := flentSeries{Units: "Mbits/s", Runner: "hopbed", From: names[fl.Src], To: names[fl.Dst], Carrier: fl.Transport, CC: fl.CC}
		if fl.GoodputBps.OK {
			m.Mean = megabits(fl.GoodputBps.V)
		}
		meta[key] = m
	}
	if shown == 0 {
		return fmt.Errorf("run %d has no samples of what arrived: there are no series for flent", runID)
	}
	sum, mean := flentTotals(&d)
	d.Results["TCP upload sum"], d.Results["TCP upload avg"] = sum, mean
	meta["TCP upload sum"] = flentSeries{Units: "Mbits/s", Runner: "sum"}
	meta["TCP upload avg"] = flentSeries{Units: "Mbits/s", Runner: "average"}
	var hosts []string
	for _, n := range nodes {
		hosts = append(hosts, n.Name)
	}
	note := "valid"
	if !run.Valid {
		note = "not valid: " + string(run.Status)
	}
	if run.Quick {
		note += "; shortened, not for conclusions"
	}
	d.Metadata = flentMetadata{
		Name: flentTest, Title: title(campaign, run), Note: note, Host: "hopbed", Hosts: hosts, LocalHost: "hopbed",
		Time: start.Format(flentTime), T0: start.Format(flentTime), Length: int(math.Round(run.DurationS)), Total: int(math.Ceil(total)), Step: step,
		Parameters: map[string]string{"upload_streams": fmt.Sprint(shown)}, Series: meta, IPVersion: 4, File: name,
		Written: version, Backend: run.Backend, Run: runID,
	}
	z := gzip.NewWriter(w)
	enc := json.NewEncoder(z)
	if err := enc.Encode(&d); err != nil {
		return fmt.Errorf("export flent: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("export flent: %w", err)
	}
	return nil
}

func megabits(bps float64) *float64 {
	v := bps / 1e6
	return &v
}

// flentFlow are the samples of one flow.
type flentFlow struct {
	start  time.Time
	t      []float64 // s since the start of the run, of what arrived
	bytes  []float64
	sender []flentPoint
}

// flentFlows reads the samples by flow; those without any are missing.
func flentFlows(ctx context.Context, st *store.Store, run *store.Run, start time.Time) (map[int]*flentFlow, error) {
	out := map[int]*flentFlow{}
	err := st.Samples(ctx, run.ID, func(s *store.Sample) error {
		f := out[s.Flow]
		if f == nil {
			f = &flentFlow{start: start}
			out[s.Flow] = f
		}
		switch {
		case s.Side == store.SideDst && s.DeliveredBytes.OK:
			f.t, f.bytes = append(f.t, float64(s.TUs)/1e6), append(f.bytes, float64(s.DeliveredBytes.V))
		case s.Side == store.SideSrc && (s.CwndPackets.OK || s.SRTTUs.OK):
			p := flentPoint{T: f.epoch(float64(s.TUs) / 1e6)}
			if s.CwndPackets.OK {
				v := s.CwndPackets.V // the sample's own is used again
				p.Cwnd = &v
			}
			if s.SRTTUs.OK {
				ms := float64(s.SRTTUs.V) / 1e3
				p.RTT = &ms
			}
			f.sender = append(f.sender, p)
		}
		return nil
	})
	for k, f := range out {
		if len(f.t) < 2 {
			delete(out, k)
		}
	}
	return out, err
}

func (f *flentFlow) epoch(t float64) float64 {
	return float64(f.start.UnixMicro())/1e6 + t
}

// points are the raw values: goodputs at the moments of the samples, and what the
// sender said, in the order of time.
func (f *flentFlow) points() []flentPoint {
	var out []flentPoint
	k := 0
	for i := 1; i < len(f.t); i++ {
		p := flentPoint{T: f.epoch(f.t[i])}
		for ; k < len(f.sender) && f.sender[k].T < p.T; k++ {
			out = append(out, f.sender[k])
		}
		if dt := f.t[i] - f.t[i-1]; dt > 0 {
			p.Val = megabits(8 * (f.bytes[i] - f.bytes[i-1]) / dt)
		}
		out = append(out, p)
	}
	return append(out, f.sender[k:]...)
}

// at are the goodputs of the steps that end at x, from the samples at both of its
// ends; nil where one of them is further than half a step away.
func (f *flentFlow) at(x []float64, step float64) []*float64 {
	near := func(t float64) (i int, ok bool) {
		i = sort.SearchFloat64s(f.t, t) // the first that is not before t
		if i == len(f.t) || i > 0 && t-f.t[i-1] < f.t[i]-t {
			i--
		}
		return i, math.Abs(f.t[i]-t) <= step/2
	}
	out := make([]*float64, len(x))
	for i, t := range x {
		a, ok1 := near(t - step)
		b, ok2 := near(t)
		if ok1 && ok2 && b > a {
			out[i] = megabits(8 * (f.bytes[b] - f.bytes[a]) / (f.t[b] - f.t[a]))
		}
	}
	return out
}

// flentTotals are sum and mean over the flows at each step; nil where none has a
// value.
func flentTotals(d *flentData) (sum, mean []*float64) {
	sum, mean = make([]*float64, len(d.X)), make([]*float64, len(d.X))
	for i := range d.X {
		total, n := 0.0, 0.0
		for k := 1; k <= len(d.Results); k++ { // in the order of the flows
			if v := d.Results[fmt.Sprintf("TCP upload::%d", k)][i]; v != nil {
				total, n = total+*v, n+1
			}
		}
		if n > 0 {
			m := total / n
			s := total
			sum[i], mean[i] = &s, &m
		}
	}
	return sum, mean
}

// title names a run among those of its campaign.
func title(c *store.Campaign, r *store.Run) string {
	t := c.Name
	if p := r.Params.String(); p != "" {
		t += " " + p
	}
	return fmt.Sprintf("%s, repetition %d, %s", t, r.Repetition, r.Backend)
}
