package transport

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

type fake struct{ family string }

func (f fake) Family() string  { return f.family }
func (fake) Wanted(*Node) bool { return false }
func (fake) Check(f *proto.Flow) error {
	if f.Options.MSS > 0 {
		return &proto.Error{Code: proto.CodeOrder, What: "option mss", Detail: "unknown"}
	}
	return nil
}
func (fake) Open(*Node, []proto.Flow) (Endpoint, error) { return nil, errors.New("not opened") }

func flow(id int, transport string) proto.Flow {
	return proto.Flow{ID: id, Transport: transport, Workload: workload.Spec{Kind: workload.Continual}}
}

func TestTableFindsEveryFlowsDriver(t *testing.T) {
	tab, err := NewTable(fake{"tcp"}, fake{"hop"}, fake{"udp"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := tab.Group([]proto.Flow{flow(0, "hop"), flow(1, "tcp/cubic"), flow(2, "hop/no-txop"), flow(3, "tcp/reno")})
	if err != nil {
		t.Fatal(err)
	}
	if len(g) != 2 || g[0].Driver.Family() != "tcp" || len(g[0].Flows) != 2 || g[0].Flows[1].ID != 3 || len(g[1].Flows) != 2 || g[1].Flows[1].Transport != "hop/no-txop" {
		t.Errorf("groups %+v", g)
	}
	if _, err := NewTable(fake{"tcp"}, fake{"tcp"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a duplicate: %v", err)
	}
	bad := flow(7, "tcp/reno")
	bad.Options.MSS = 1
	for name, c := range map[string]struct {
		flows []proto.Flow
		want  []string
	}{
		"unknown":  {[]proto.Flow{flow(5, "sctp")}, []string{"flow 5", "sctp", "tcp, hop, udp"}},
		"twice":    {[]proto.Flow{flow(5, "hop"), flow(5, "hop")}, []string{"flow 5", "twice"}},
		"option":   {[]proto.Flow{bad}, []string{"flow 7", "option mss"}},
		"workload": {[]proto.Flow{{ID: 8, Transport: "udp"}}, []string{"flow 8", "workload"}},
	} {
		_, err := tab.Group(c.flows)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
}

func TestSideAndStop(t *testing.T) {
	f := flow(0, "hop")
	f.Src, f.Dst, f.Path = 1, 4, []int{1, 2, 4}
	for id, want := range map[int]proto.Side{1: proto.Source, 2: proto.Relay, 4: proto.Destination, 3: ""} {
		side, ok := (&Node{ID: id}).Side(&f)
		if side != want || ok != (want != "") {
			t.Errorf("node %d: %q, %v", id, side, ok)
		}
	}
	s := Schedule{Warmup: 10, End: 100}
	if s.FlowStop(&f) != 100 {
		t.Error("a flow without a stop ends with the run")
	}
	f.Stop = 50
	if s.FlowStop(&f) != 50 {
		t.Error("a flow ends at its stop")
	}
	f.Stop = vtime.Time(vtime.Hour)
	if s.FlowStop(&f) != 100 {
		t.Error("no flow outlives the run")
	}
}

// The queues in the order of the board: those of the radio, then one per pipe.
func TestQueues(t *testing.T) {
	for _, c := range [][3]int{{0, Background, 0}, {0, Voice, 3}, {1, Background, 4}, {1, Voice, 4}, {3, BestEffort, 6}} {
		if got := Queue(c[0], c[1]); got != c[2] {
			t.Errorf("port %d, category %d: queue %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// The WMM map, from the table of the experiment's contract.
func TestAccessCategories(t *testing.T) {
	for dscp, want := range map[int]int{0: BestEffort, 8: Background, 16: Background, 24: BestEffort, 32: Video, 40: Video, 48: Voice, 56: Voice, 46: Voice, 10: Background} {
		if got := ACOf(dscp); got != want {
			t.Errorf("DSCP %d goes to queue %d, want %d", dscp, got, want)
		}
	}
}
