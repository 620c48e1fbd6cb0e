package wifi

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestFreeze: node 2 has a backoff of 10 slots when node 0 begins to transmit at
// a slot boundary. What is left tells the countdown rule.
func TestFreeze(t *testing.T) {
	for _, c := range []struct {
		qos   bool
		start vtime.Duration // of node 0, after the end of node 2's AIFS
		left  int
	}{
		// EDCA: the boundaries 0…k count, also the one at which the other begins.
		{true, 0, 9}, {true, 20 * us, 8}, {true, 60 * us, 6}, {true, 180 * us, 0},
		// DCF: whole idle slots.
		{false, 0, 10}, {false, 20 * us, 9}, {false, 60 * us, 7}, {false, 180 * us, 1},
		// Within AIFS, earlier than the detection time before its end: nothing.
		{true, -20 * us, 10}, {false, -20 * us, 10}, {true, -45 * us, 10},
		// Off the boundaries (stations whose slots do not line up): 7 µs after
		// boundary 2 the station hears it only at 47+20 > 60 µs, so boundary 3 counts.
		{true, 47 * us, 6}, {false, 47 * us, 7},
		{true, 40*us - 1, 7}, {true, 40*us + 1, 6},
	} {
		mac := fixedCW(func(m *MAC) { m.QoS = c.qos })
		l := newLab(t, 1, cell(t, 3), mac)
		s := &l.m.stations[2]
		l.at(0, func() {
			l.send(2, 1, BE, 1000)
			s.queues[BE].backoff = 10
			l.m.arm(s, 0)
		})
		// Node 0 is idle for AIFS since time 0 as node 2 is; an enqueue after 50 µs is
		// sent at once. Before that its own base is moved.
		l.at(50*us+c.start, func() {
			s, base := &l.m.stations[0], l.eng.Now()-vtime.Time(50*us)
			s.idleFrom, s.nav, s.hold = base, base, base
			l.send(0, 1, BE, 1000)
		})
		l.run(50*us + c.start)
		l.run(100) // the access event
		if !s.busy || s.queues[BE].backoff != c.left {
			t.Errorf("QoS %v, transmission %v after AIFS: %d slots left (busy %v), want %d", c.qos, c.start, s.queues[BE].backoff, s.busy, c.left)
		}
	}
}

// TestCommitted: a station whose backoff ends before it can have heard another's
// begin transmits all the same, and both collide.
func TestCommitted(t *testing.T) {
	for _, c := range []struct {
		gap     vtime.Duration // node 0 begins this long before node 2's backoff ends
		collide bool
	}{{0, true}, {1, true}, {19 * us, true}, {20 * us, false}, {25 * us, false}} {
		l := newLab(t, 1, cell(t, 3), fixedCW(func(m *MAC) { m.Retries = 0 }))
		l.at(0, func() {
			l.send(2, 1, BE, 1000)
			l.m.stations[2].queues[BE].backoff = 10
			l.m.arm(&l.m.stations[2], 0)
		})
		l.at(250*us-c.gap, func() { l.send(0, 1, BE, 1000) })
		l.run(10 * ms)
		if got := l.outcomes[0][RetryLimit] == 1 && l.outcomes[2][RetryLimit] == 1; got != c.collide {
			t.Errorf("gap %v: outcomes %v, %v, want a collision: %v", c.gap, l.outcomes[0], l.outcomes[2], c.collide)
		}
	}
}

func TestPostTransmissionBackoff(t *testing.T) {
	// After a success the station draws, also with an empty queue; the backoff runs
	// down unseen, and an arrival after its end is sent at once.
	mac := fixedCW(func(m *MAC) { m.Queues[BE].CWmin, m.Queues[BE].CWmax = 1023, 1023 })
	draw := func(arrival vtime.Duration) (backoff int, start vtime.Time) {
		l := newLab(t, 1, cell(t, 2), mac)
		rec := &recorder{}
		l.m.SetMonitor(rec)
		l.at(1000*us, func() { l.send(0, 1, BE, 1000) })
		l.at(2300*us, func() { backoff = l.m.stations[0].queues[BE].backoff })
		l.at(arrival, func() { l.send(0, 1, BE, 1000) })
		l.run(60 * ms)
		return backoff, rec.air[2].Start
	}
	k, start := draw(2400 * us)
	done := vtime.Time(1000*us + 947*us + 258*us + 50*us + vtime.Duration(k)*20*us)
	if k < 20 || start != done {
		t.Errorf("backoff %d: arrival during it transmits at %v, want %v", k, start, done)
	}
	late := vtime.Duration(done) + 33*us
	if _, start = draw(late); start != vtime.Time(late) {
		t.Errorf("arrival at %v after the backoff's end %v transmits at %v", late, done, start)
	}
}

func TestAccessCategoryPriorities(t *testing.T) {
	// Four saturated stations, one per category: shares in order, VO far ahead.
	l := newLab(t, 3, cell(t, 5), DefaultMAC(StandardB))
	for ac := AC(0); ac < NumAC; ac++ {
		l.saturate(int(ac)+1, 0, ac, 1500, 60)
	}
	l.measure(60 * sec)
	var g [NumAC]float64
	for ac := range g {
		g[ac] = l.goodput(ac+1, 0, 1500, 60*sec)
	}
	t.Logf("bk, be, vi, vo: %.3f Mb/s", g)
	if g[BK] >= 0.5*g[BE] || g[BE] >= 0.5*g[VI] || g[VI] >= g[VO]*1.5 || g[BK] <= 0 {
		t.Errorf("goodput by category %.3f Mb/s: want bk < be < vi, vo", g)
	}
	// AIFS alone: same window, AIFSN 2 against 3, n = 2 + 2.
	mac := DefaultMAC(StandardB).LegacyDCF()
	mac.QoS = true
	mac.Queues[VI].AIFSN, mac.Queues[BE].AIFSN = 2, 3
	l = newLab(t, 3, cell(t, 5), mac)
	for i := 1; i <= 4; i++ {
		l.saturate(i, 0, []AC{BE, VI}[i%2], 1500, 60)
	}
	l.measure(100 * sec)
	vi := l.goodput(1, 0, 1500, 100*sec) + l.goodput(3, 0, 1500, 100*sec)
	be := l.goodput(2, 0, 1500, 100*sec) + l.goodput(4, 0, 1500, 100*sec)
	// A station one slot of AIFS behind loses that slot after every busy period:
	// less, but not starved.
	if r := vi / be; r < 1.05 || r > 1.6 {
		t.Errorf("AIFSN 2 : 3 gives %.3f : %.3f Mb/s", vi, be)
	}
}

func TestInternalCollision(t *testing.T) {
	// Both queues of one node end their backoff on one slot: the higher one sends,
	// the lower one doubles its window as after a collision.
	mac := fixedCW(func(m *MAC) { m.Retries = 2; m.Queues[BK].CWmax = 7 })
	l := newLab(t, 1, cell(t, 2), mac)
	rec := &recorder{}
	l.m.SetMonitor(rec)
	l.at(1000*us, func() { l.send(0, 1, BK, 1000); l.send(0, 1, VO, 1000) })
	l.run(1001 * us)
	q := &l.m.stations[0].queues[BK]
	if st := l.m.Stats(0); st.AC[BK].Internal != 1 || st.AC[VO].Internal != 0 || q.cw != 1 || len(rec.air) != 1 || rec.air[0].AC != VO {
		t.Fatalf("internal %d/%d, BK window %d, on the air:\n%v", st.AC[BK].Internal, st.AC[VO].Internal, q.cw, rec)
	}
	l.run(10 * ms)
	if l.outcomes[0][Acked] != 2 || len(rec.air) != 4 || rec.air[2].Retry {
		t.Errorf("outcomes %v; a frame that lost inside the node was not sent before:\n%v", l.outcomes[0], rec)
	}
	// Permanent: VO always wins, BK is dropped after Retries+1 lost accesses.
	mac.Queues[BK].CWmax = 0
	l = newLab(t, 1, cell(t, 2), mac)
	l.saturate(0, 1, VO, 1000, 3)
	l.send(0, 1, BK, 1000)
	l.run(20 * ms)
	st := l.m.Stats(0).AC[BK]
	if st.Outcomes[RetryLimit] != 1 || st.Internal != 3 || st.Attempts != 0 {
		t.Errorf("BK: %d drops, %d internal collisions, %d attempts, want 1, 3, 0", st.Outcomes[RetryLimit], st.Internal, st.Attempts)
	}
	// Without acknowledgement there is no retry counter: it waits, its window stays.
	mac.Queues[BK].Ack, mac.Queues[BK].CWmax = AckNone, 7
	l = newLab(t, 1, cell(t, 2), mac)
	l.saturate(0, 1, VO, 1000, 3)
	l.send(0, 1, BK, 1000)
	l.run(20 * ms)
	if st := l.m.Stats(0).AC[BK]; st.Internal < 5 || st.Outcomes[RetryLimit] != 0 || l.m.stations[0].queues[BK].cw != 0 {
		t.Errorf("BK without ACK: %+v, window %d", st, l.m.stations[0].queues[BK].cw)
	}
}

func TestAllQueuesAreHeldDuringAnExchange(t *testing.T) {
	// A VO frame arrives while BE's frame is on the air, another while it waits for
	// the ACK: both wait until it has ended.
	for _, when := range []vtime.Duration{500 * us, 1000 * us, 1150 * us} {
		_, rec := record(t, cell(t, 2), 5*ms, func(l *lab) {
			l.send(0, 1, BE, 1000) // 50..997, ACK 1007..1255
			l.at(when, func() { l.send(0, 1, VO, 1000) })
		}, fixedCW(nil))
		if x := rec.air[2]; x.AC != VO || x.Start != vtime.Time(1305*us) {
			t.Errorf("VO frame of %v on the air:\n%v", when, rec)
		}
	}
	// A burst keeps the air against a higher queue of its own node.
	_, rec := record(t, cell(t, 2), 9*ms, func(l *lab) {
		for i := 0; i < 3; i++ {
			l.send(0, 1, BK, 1000)
		}
		l.at(100*us, func() { l.send(0, 1, VO, 1000) })
	}, fixedCW(func(m *MAC) { m.Queues[BK].TXOP = 8160 * us }))
	var order []AC
	for _, x := range rec.air {
		if x.Kind == KindData {
			order = append(order, x.AC)
		}
	}
	if len(order) != 4 || order[2] != BK || order[3] != VO {
		t.Errorf("order on the air %v, want three BK frames, then VO", order)
	}
}

func TestOnlySendersInTheirOwnTxopMayFollow(t *testing.T) {
	// A frame that the sink enqueues from Done joins the burst.
	mac := fixedCW(func(m *MAC) { m.Queues[BE].TXOP = 8160 * us })
	l := newLab(t, 1, cell(t, 2), mac)
	rec := &recorder{}
	l.m.SetMonitor(rec)
	l.saturate(0, 1, BE, 1000, 1)
	l.run(8 * ms)
	// 947+10+248 = 1205 per frame and SIFS between: six fit into 8160 µs.
	for i := 2; i < 12; i += 2 {
		if gap := rec.air[i].Start.Sub(rec.air[i-1].End); gap != 10*us {
			t.Errorf("frame %d follows after %v, want SIFS", i/2, gap)
		}
	}
}

func TestQueueLimits(t *testing.T) {
	mac := DefaultMAC(StandardB)
	mac.Queues[BE].Limit, mac.Queues[BE].LimitBytes = 5, 4000
	l := newLab(t, 1, cell(t, 2), mac)
	for i, c := range []struct {
		n  vtime.Bytes
		ok bool
	}{{1500, true}, {1500, true}, {1500, false}, {1000, true}, {0, true}, {0, true}, {0, false}} {
		if got := l.send(0, 1, BE, c.n); got != c.ok {
			t.Errorf("frame %d of %d bytes: accepted %v, want %v", i, c.n, got, c.ok)
		}
	}
	if q := l.m.Queue(0, BE); q.Packets != 5 || q.Bytes != 4000 || q.FreePackets != 0 {
		t.Errorf("queue %+v", q)
	}
	if q := l.m.Queue(0, VO); q.Packets != 0 || q.FreePackets != mac.Queues[VO].Limit {
		t.Errorf("VO queue %+v: the queues are separate", q)
	}
	l.run(sec)
	st := l.m.Stats(0).AC[BE]
	if st.Outcomes[Overflow] != 2 || st.Outcomes[Acked] != 5 || st.Enqueued != 5 || st.MaxQueue != 5 || l.m.Queue(0, BE).Packets != 0 {
		t.Errorf("counters %+v", st)
	}
	if l.outcomes[0][Overflow] != 0 {
		t.Error("Done was called for a refused frame")
	}
}

func TestQueueTimeAndDelayAreLittlesLaw(t *testing.T) {
	l := newLab(t, 5, cell(t, 4), DefaultMAC(StandardB))
	for i := 1; i < 4; i++ {
		l.saturate(i, 0, BE, 800, 10*i)
	}
	l.run(50 * sec)
	for i := 1; i < 4; i++ {
		st := l.m.Stats(i).AC[BE]
		mean := st.QueueTime.Seconds() / 50
		if math.Abs(mean-float64(10*i)) > 0.01 {
			t.Errorf("node %d: mean queue %.3f, want %d", i, mean, 10*i)
		}
		// Little: mean queue = rate × mean delay, up to what is queued at the ends.
		if d := st.Delay.Seconds(); math.Abs(d-st.QueueTime.Seconds()) > 0.03*d {
			t.Errorf("node %d: sum of delays %.1f s, queue integral %.1f s", i, d, st.QueueTime.Seconds())
		}
	}
}
