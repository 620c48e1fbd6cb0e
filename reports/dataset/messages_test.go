package dataset

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// Messages are summed up by workload; a flow of which nothing arrived counts with
// its losses and has no delay.
func TestMessagesOfASeries(t *testing.T) {
	flow := func(workload string, sent, delivered, p50 int64) store.Flow {
		f := store.Flow{Workload: workload, GoodputBps: store.Some(1000.0), Messages: store.Some(sent), MessagesDelivered: store.Some(delivered)}
		if delivered > 0 {
			f.DelayP50Us, f.DelayP95Us, f.DelayP99Us = store.Some(p50), store.Some(2*p50), store.Some(3*p50)
		}
		return f
	}
	call := flow("voip", 500, 400, 20_000)
	call.RFactor, call.MOS = store.Some(80.0), store.Some(4.0)
	dead := flow("voip", 500, 0, 0)
	dead.RFactor, dead.MOS = store.Some(0.0), store.Some(1.0)
	bulk := store.Flow{Workload: "continual", GoodputBps: store.Some(5.0)}
	s := Series{Reps: []Rep{{Flows: []store.Flow{flow("web", 10, 10, 100_000), call, bulk}}, {Flows: []store.Flow{dead, flow("web", 10, 9, 300_000), bulk}}}}
	got := s.Messages()
	if len(got) != 2 || got[0].Workload != "voip" || got[1].Workload != "web" {
		t.Fatalf("%+v", got)
	}
	v, w := got[0], got[1]
	if v.Flows != 2 || v.Messages != 1000 || v.LostShare() != 0.6 || v.Delay != [3]float64{0.02, 0.04, 0.06} || v.RFactor != 40 || v.MOS != 2.5 {
		t.Errorf("voip: %+v", v)
	}
	if w.Messages != 20 || w.Delivered != 19 || math.Abs(w.Delay[0]-0.2) > 1e-9 || !math.IsNaN(w.RFactor) {
		t.Errorf("web: %+v", w)
	}
	// Of the flows only the bulk ones can starve.
	if got := s.Reps[0].StarvedShare(); got != 1 {
		t.Errorf("starved: %g", got)
	}
	only := Rep{Flows: []store.Flow{call}}
	if got := only.StarvedShare(); !math.IsNaN(got) {
		t.Errorf("calls alone: starved %g", got)
	}
	if (&Series{Reps: []Rep{{Flows: []store.Flow{bulk}}}}).Messages() != nil {
		t.Error("bulk flows have messages")
	}
}
