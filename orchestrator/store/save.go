package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// CreateCampaign adds a campaign and returns its id, which it also sets in c
// together with what c leaves empty: Created (now), Status (running) and
// FileSHA256 (of FileText).
func (s *Store) CreateCampaign(ctx context.Context, c *Campaign) (int64, error) {
	if c.Created.IsZero() {
		c.Created = StampOf(time.Now())
	}
	if c.Status == "" {
		c.Status = CampaignRunning
	}
	if c.FileSHA256 == "" {
		sum := sha256.Sum256([]byte(c.FileText))
		c.FileSHA256 = hex.EncodeToString(sum[:])
	}
	err := s.inTx(ctx, "create campaign "+c.Name, func(tx *sqlx.Tx) error {
		id, err := insertOne(ctx, tx, campaignsTable, c)
		c.ID = id
		return err
	})
	if err != nil {
		return 0, err
	}
	return c.ID, nil
}

// FinishCampaign records how a campaign ended, now. A note says more than the
// status where that is needed; it may be empty.
func (s *Store) FinishCampaign(ctx context.Context, id int64, status CampaignStatus, note string) error {
	return s.setCampaign(ctx, id, status, StampOf(time.Now()), note)
}

// ReopenCampaign marks a campaign as running again, for --resume.
func (s *Store) ReopenCampaign(ctx context.Context, id int64) error {
	return s.setCampaign(ctx, id, CampaignRunning, Stamp{}, "")
}

// JoinCampaigns records that campaigns belong to one command, which carries the
// same experiment out on several back ends: the first of them names the batch.
func (s *Store) JoinCampaigns(ctx context.Context, first int64, ids ...int64) error {
	return s.inTx(ctx, fmt.Sprintf("join campaigns to %d", first), func(tx *sqlx.Tx) error {
		for _, id := range append([]int64{first}, ids...) {
			res, err := tx.ExecContext(ctx, "UPDATE campaigns SET batch = ? WHERE id = ?", first, id)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				return errors.Join(err, fmt.Errorf("campaign %d: %w", id, ErrNotFound))
			}
		}
		return nil
	})
}

func (s *Store) setCampaign(ctx context.Context, id int64, status CampaignStatus, finished Stamp, note string) error {
	op := fmt.Sprintf("update campaign %d", id)
	return s.inTx(ctx, op, func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE campaigns SET status = ?, finished_utc = ?, note = ? WHERE id = ?", status, finished, note, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrNotFound)
		}
		return nil
	})
}

// SaveRun adds a run with everything that belongs to it, in one transaction:
// after an error nothing of it is in the database. It sets the run's id in
// every row, numbers the events, and gives the run the next attempt number
// when it has none.
//
// Validity is the database's to say: a run with the status complete is valid
// and may have neither invalid reasons nor an error.
func (s *Store) SaveRun(ctx context.Context, rec *RunRecord) error {
	r := &rec.Run
	op := fmt.Sprintf("save run of campaign %d (%s, repetition %d)", r.CampaignID, r.Params, r.Repetition)
	if err := rec.check(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return s.inTx(ctx, op, func(tx *sqlx.Tx) error {
		if r.Attempt == 0 {
			var last sql.NullInt64
			if err := tx.GetContext(ctx, &last, "SELECT max(attempt) FROM runs WHERE campaign_id = ? AND params = ? AND repetition = ? AND seed = ?",
				r.CampaignID, r.Params, r.Repetition, r.Seed); err != nil {
				return err
			}
			r.Attempt = int(last.Int64) + 1
		}
		id, err := insertOne(ctx, tx, runsTable, r)
		if err != nil {
			return err
		}
		rec.setID(id)
		r.Valid = r.Status == RunComplete
		for _, insert := range []func() error{
			func() error { return insertMany(ctx, tx, nodesTable, rec.Nodes, nil) },
			func() error { return insertMany(ctx, tx, linksTable, rec.Links, nil) },
			func() error { return insertMany(ctx, tx, flowsTable, rec.Flows, nil) },
			func() error { return insertMany(ctx, tx, samplesTable, rec.Samples, keyOrder(rec.Samples)) },
			func() error { return insertMany(ctx, tx, messagesTable, rec.Messages, messageOrder(rec.Messages)) },
			func() error { return insertMany(ctx, tx, nodeStatsTable, rec.NodeStats, nil) },
			func() error { return insertMany(ctx, tx, pipesTable, rec.Pipes, nil) },
			func() error { return insertMany(ctx, tx, eventsTable, rec.Events, nil) },
			func() error { return insertMany(ctx, tx, artifactsTable, rec.Artifacts, nil) },
		} {
			if err := insert(); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyOrder is the order of the samples' primary key. They come in the order of
// time; inserted so, every row would go to another page of the table and leave
// the pages half full.
func keyOrder(samples []Sample) []int {
	order := make([]int, len(samples))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &samples[i], &samples[j]
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Node, b.Node), cmp.Compare(a.TUs, b.TUs))
	})
	return order
}

// messageOrder is the order of the messages' primary key.
func messageOrder(messages []Message) []int {
	before := func(a, b Message) int { return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Message, b.Message)) }
	if slices.IsSortedFunc(messages, before) {
		return nil
	}
	order := make([]int, len(messages))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return before(messages[i], messages[j]) })
	return order
}

func (rec *RunRecord) setID(id int64) {
	rec.Run.ID = id
	for i := range rec.Nodes {
		rec.Nodes[i].RunID = id
	}
	for i := range rec.Links {
		rec.Links[i].RunID = id
	}
	for i := range rec.Flows {
		rec.Flows[i].RunID = id
	}
	for i := range rec.Samples {
		rec.Samples[i].RunID = id
	}
	for i := range rec.Messages {
		rec.Messages[i].RunID = id
	}
	for i := range rec.NodeStats {
		rec.NodeStats[i].RunID = id
	}
	for i := range rec.Pipes {
		rec.Pipes[i].RunID = id
	}
	for i := range rec.Events {
		rec.Events[i].RunID, rec.Events[i].Seq = id, i
		rec.Events[i].Count = max(rec.Events[i].Count, 1)
	}
	for i := range rec.Artifacts {
		rec.Artifacts[i].RunID = id
	}
}

// goodputTolerance allows for rounding in the caller's arithmetic only.
const goodputTolerance = 1e-6

// check refuses what no reader could tell from a measurement: a goodput that
// is not the bytes over the interval.
func (rec *RunRecord) check() error {
	r := &rec.Run
	if r.Status == RunComplete && r.DurationS <= 0 {
		return fmt.Errorf("a complete run must have a measured interval, not %g s", r.DurationS)
	}
	for i := range rec.Flows {
		f := &rec.Flows[i]
		if !f.GoodputBps.OK || f.Size.OK {
			continue // a sized flow may end before the interval does
		}
		seconds := f.MeasuredS(r)
		if seconds <= 0 {
			return fmt.Errorf("flow %d has a goodput but no measured interval", f.Flow)
		}
		want := 8 * float64(f.Bytes) / seconds
		if math.Abs(f.GoodputBps.V-want) > goodputTolerance*math.Max(want, 1) {
			return fmt.Errorf("flow %d: goodput %g b/s is not 8 × %d B / %g s = %g b/s", f.Flow, f.GoodputBps.V, f.Bytes, seconds, want)
		}
	}
	return nil
}

// MeasuredS is the length in seconds of what a flow's goodput is taken over: the
// part of the run's measured interval in which the flow was meant to run.
func (f *Flow) MeasuredS(r *Run) float64 {
	from, to := r.WarmupS, r.WarmupS+r.DurationS
	from = math.Max(from, f.StartS)
	if f.StopS > 0 { // 0: it was never told to stop
		to = math.Min(to, f.StopS)
	}
	return math.Max(0, to-from)
}

// Throughout tells that the flow was meant to run in the whole of the measured
// interval.
func (f *Flow) Throughout(r *Run) bool {
	return math.Abs(f.MeasuredS(r)-r.DurationS) <= 1e-9*r.DurationS
}

// AggregateBps is what the flow adds to the aggregate of its run: what it
// delivered over the whole of the measured interval, which is its goodput where
// it was meant to run throughout. Goodputs over different parts of the interval
// have no sum.
func (f *Flow) AggregateBps(r *Run) float64 {
	if f.Throughout(r) {
		return f.GoodputBps.V
	}
	return f.GoodputBps.V * f.MeasuredS(r) / r.DurationS
}

// Goodput returns 8 × bytes / seconds, the definition of goodput_bps.
func Goodput(bytes int64, seconds float64) Opt[float64] {
	if seconds <= 0 {
		return None[float64]()
	}
	return Some(8 * float64(bytes) / seconds)
}
