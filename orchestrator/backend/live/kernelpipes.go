//go:build linux

package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// kernelPipes says which wired links of a run the kernel emulates, and how.
type kernelPipes struct {
	shapes map[int][2]tc.Shape // by pipe; the others are this program's
	why    map[int]string      // of links that say auto or kernel
}

// is says whether the kernel has the pipe. The zero value has none.
func (k *kernelPipes) is(pipe int) bool {
	_, ok := k.shapes[pipe]
	return ok
}

// chooseEmulators decides about every link that does not say user. capture: the
// run's packets are recorded. A link that must be the kernel's and cannot be makes
// the error.
func (b *Backend) chooseEmulators(s *plan.Scenario, capture bool) (*kernelPipes, error) {
	k := &kernelPipes{shapes: map[int][2]tc.Shape{}, why: map[int]string{}}
	t := s.Topology
	if !slices.ContainsFunc(t.Pipes, func(p topology.Pipe) bool { return p.Emulator != spec.UserEmulator }) {
		return k, nil
	}
	f, err := tc.Probe()
	if err != nil {
		return nil, err
	}
	looked := queuesLookedAt(s)
	for i := range t.Pipes {
		p := &t.Pipes[i]
		if p.Emulator == spec.UserEmulator {
			continue
		}
		shapes, lack := kernelShapes(p, f, s.Seed)
		switch {
		case lack != nil:
		case capture:
			lack = reason("its packets are to be recorded, and pass by no process of hopbed", "record without it, or use the emulator \"user\"")
		case looked[i] != "":
			lack = reason(looked[i]+" looks at the queue before each link, which the kernel does not show", "use the emulator \"user\" for this link")
		case switched(t, p):
			lack = reason("one of its nodes is switched off and on", "use the emulator \"user\" for this link")
		}
		switch {
		case lack == nil:
			k.shapes[i], k.why[i] = shapes, "kernel"
		case p.Emulator == spec.AutoEmulator:
			k.why[i] = "user: " + because(lack)
		default:
			return nil, refused(b.Name(), i, p, lack)
		}
	}
	return k, nil
}

// noKernel is why the kernel cannot have a link.
type noKernel struct{ because, do string }

func (n *noKernel) Error() string { return n.because + "; " + n.do }

func reason(because, do string) error { return &noKernel{because, do} }

// because is the reason without the remedy.
func because(err error) string {
	b, _ := parts(err)
	return b
}

func parts(err error) (because, do string) {
	var n *noKernel
	var u *tc.Unlike
	var a *tap.Unavailable
	switch {
	case errors.As(err, &n):
		return n.because, n.do
	case errors.As(err, &u):
		return u.What + ": " + u.Because, u.Do
	case errors.As(err, &a):
		return a.Because, a.Do
	}
	return err.Error(), "use the emulator \"user\" for this link"
}

func refused(name string, i int, p *topology.Pipe, err error) error {
	because, do := parts(err)
	return &backend.ErrUnsupported{Backend: name, What: fmt.Sprintf("emulator: kernel of topology.pipes[%d]", i), Because: because, Do: do}
}

// kernelShapes converts both directions of a pipe, and says what the kernel lacks
// for them.
func kernelShapes(p *topology.Pipe, f *tc.Features, seed uint64) (out [2]tc.Shape, err error) {
	for e := range out {
		if out[e], err = tc.FromPipe(&p.Config[e]); err != nil {
			return out, err
		}
		if f.Seed {
			out[e].Seed = pipeSeed(seed, p.ID, e)
		}
		if err := f.Suit([]tc.Class{{Shape: out[e]}}); err != nil {
			return out, err
		}
	}
	return out, nil
}

// pipeSeed gives each direction draws of its own.
func pipeSeed(seed uint64, pipe, end int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/kernel/%d/%d", seed, pipe, end)
	return max(h.Sum64(), 1)
}

// queuesLookedAt returns, by pipe, a transport that needs to know the queue of that
// link: Hop at every node, and a source that keeps the queue full.
func queuesLookedAt(s *plan.Scenario) map[int]string {
	out := map[int]string{}
	t, c := s.Topology, s.Config()
	mark := func(path []int, who string) {
		for i := 1; i < len(path); i++ {
			for _, e := range t.LinkPath(path[i-1], path[i]) {
				if e.Pipe != topology.RadioEgress {
					out[e.Pipe] = who
				}
			}
		}
	}
	for _, f := range s.Flows {
		g := &c.Flows[f.Group]
		switch tr := g.Transport; {
		case tr.Family() == spec.FamilyHop:
			mark(f.Path, string(tr))
			mark(t.Routes.Path(f.Dst, f.Src), string(tr))
		case tr.Family() == spec.FamilyUDP && c.Transports.UDP.Rate == 0 && !g.Workload.HasMessages() && len(f.Path) > 1:
			mark(f.Path[:2], string(tr)+" without a rate") // its source alone
		}
	}
	return out
}

func switched(t *topology.Topology, p *topology.Pipe) bool {
	for i := range t.Changes {
		if n, is := t.Changes[i].Node(); is && (n == p.Ends[0] || n == p.Ends[1]) {
			return true
		}
	}
	return false
}

// shapers are the links of a node that its kernel emulates, in the order of its
// interfaces.
func (k *kernelPipes) shapers(t *topology.Topology, node int) []tc.Link {
	var out []tc.Link
	for i := range t.Pipes {
		shapes, ok := k.shapes[i]
		for e, n := range t.Pipes[i].Ends {
			if ok && n == node {
				out = append(out, tc.Link{Interface: t.Pipes[i].Interfaces[e], Egress: []tc.Class{{Shape: shapes[e]}}})
			}
		}
	}
	return out
}

// collect fills in the rows of the links that the kernel had, from the nodes'
// counters, and says in the facts who had those that do not say user.
func (k *kernelPipes) collect(rec *store.RunRecord, t *topology.Topology, results []*proto.Results) {
	for i, why := range k.why {
		rec.Run.Facts[fmt.Sprintf("pipe_%d_emulator", i)] = why
	}
	for i := range rec.Pipes {
		row := &rec.Pipes[i]
		shapes, ok := k.shapes[row.Pipe]
		if !ok {
			continue
		}
		e := 0
		if row.Src == t.Pipes[row.Pipe].Ends[1] {
			e = 1
		}
		row.Setting = strings.TrimPrefix(row.Setting+"; emulated by the kernel", "; ")
		kernelRow(row, &shapes[e], counted(results, row))
	}
}

// counted finds a link's counters at its sender; nil where there are none.
func counted(results []*proto.Results, row *store.Pipe) *tc.Counters {
	if row.Src >= len(results) || results[row.Src] == nil {
		return nil
	}
	for i := range results[row.Src].Facts.Shapers {
		c := &results[row.Src].Facts.Shapers[i]
		if c.Interface == row.Interface && !c.Ingress {
			return c
		}
	}
	return nil
}

// kernelRow fills a row with what the kernel counts, and leaves absent what it does
// not: copies, holding back, the time for which the link was busy, the queue's length.
func kernelRow(row *store.Pipe, s *tc.Shape, c *tc.Counters) {
	none := store.Opt[int64]{}
	row.Duplicates, row.HeldBack, row.BusyUs, row.QueueMaxPackets, row.QueueMeanPackets = none, none, none, none, store.Opt[float64]{}
	row.Entered, row.Delivered, row.DeliveredBytes, row.Lost, row.DropsQueue = none, none, none, none, none
	if c == nil {
		return
	}
	row.Delivered, row.DeliveredBytes = store.Some(int64(c.Packets)), store.Some(int64(c.Bytes))
	row.Lost, row.DropsQueue = store.Some(int64(c.Lost)), store.Some(int64(c.Dropped))
	if s.Duplicate == 0 {
		// What waited at either end of the interval is not known to have entered in it.
		row.Entered = store.Some(int64(c.Packets + c.Lost + c.Dropped))
	}
}

// preflightEmulators says before the first run which links the kernel must have and
// cannot.
func (b *Backend) preflightEmulators(p *plan.Plan) error {
	for i := range p.Runs {
		r := &p.Runs[i]
		if r.Repetition != 1 || r.Unmeasured() || !slices.ContainsFunc(r.Config().Topology.Pipes, func(p spec.Pipe) bool { return p.Emulator == spec.KernelEmulator }) {
			continue
		}
		s, err := r.Scenario()
		if err != nil {
			return err
		}
		if _, err := b.chooseEmulators(s, false); err != nil {
			return err
		}
	}
	return nil
}

// shaperFacts keeps what the kernel took for the links that it emulates.
func shaperFacts(f map[string]string, links []tc.Link) {
	for _, l := range links {
		if len(l.Egress)+len(l.Ingress) != 1 {
			f["shaper_"+l.Interface] = fmt.Sprintf("%d classes out, %d in", len(l.Egress), len(l.Ingress))
			continue
		}
		c := slices.Concat(l.Egress, l.Ingress)[0]
		if b, err := json.Marshal(c); err == nil {
			f["shaper_"+l.Interface] = string(b)
		}
	}
}
