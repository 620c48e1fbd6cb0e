package store

import (
	"context"
	"fmt"
	"strings"
)

// Campaigns returns all campaigns, the oldest first.
func (s *Store) Campaigns(ctx context.Context) ([]Campaign, error) {
	var out []Campaign
	err := s.r.SelectContext(ctx, &out, "SELECT * FROM campaigns ORDER BY id")
	for i := range out {
		s.lookAlive(&out[i])
	}
	return out, s.wrap("read campaigns", err)
}

// lookAlive tells a campaign at work from one whose process was killed.
func (s *Store) lookAlive(c *Campaign) {
	if c.Status == CampaignRunning && !s.BeingWritten() {
		c.Status = CampaignKilled
	}
}

// Campaign returns one campaign; an error wraps ErrNotFound when it is not
// there.
func (s *Store) Campaign(ctx context.Context, id int64) (*Campaign, error) {
	var c Campaign
	err := s.r.GetContext(ctx, &c, "SELECT * FROM campaigns WHERE id = ?", id)
	if err != nil {
		return nil, s.wrap("read campaign", notFound(err, "campaign", id))
	}
	s.lookAlive(&c)
	return &c, nil
}

// LatestCampaign returns the newest campaign that has at least one run, or the
// newest of all when none has; an error wraps ErrNotFound when there is none.
func (s *Store) LatestCampaign(ctx context.Context) (*Campaign, error) {
	var c []Campaign
	err := s.r.SelectContext(ctx, &c, "SELECT * FROM campaigns ORDER BY (SELECT count(*) > 0 FROM runs WHERE campaign_id = campaigns.id) DESC, id DESC LIMIT 1")
	if err != nil {
		return nil, s.wrap("read campaigns", err)
	}
	if len(c) == 0 {
		return nil, fmt.Errorf("database %s holds no campaign yet: %w", s.path, ErrNotFound)
	}
	s.lookAlive(&c[0])
	return &c[0], nil
}

// Batch returns the ids of the campaigns that were carried out by the same
// command as this one, on several back ends, in their order: its own alone when
// it stands alone.
func (s *Store) Batch(ctx context.Context, id int64) ([]int64, error) {
	c, err := s.Campaign(ctx, id)
	if err != nil {
		return nil, err
	}
	if !c.Batch.OK {
		return []int64{id}, nil
	}
	var ids []int64
	err = s.r.SelectContext(ctx, &ids, "SELECT id FROM campaigns WHERE batch = ? ORDER BY id", c.Batch.V)
	return ids, s.wrap("read campaigns", err)
}

// Resumable returns the newest campaign that ran the same text with the same
// seed on the same back end and is not complete, or nil when there is none.
func (s *Store) Resumable(ctx context.Context, fileSHA256 string, seed Seed, backend string, quick bool) (*Campaign, error) {
	return s.newest(ctx, "status <> ?", fileSHA256, seed, backend, quick)
}

// Completed returns the newest campaign likewise that is complete.
func (s *Store) Completed(ctx context.Context, fileSHA256 string, seed Seed, backend string, quick bool) (*Campaign, error) {
	return s.newest(ctx, "status = ?", fileSHA256, seed, backend, quick)
}

func (s *Store) newest(ctx context.Context, complete, fileSHA256 string, seed Seed, backend string, quick bool) (*Campaign, error) {
	var c []Campaign
	err := s.r.SelectContext(ctx, &c, "SELECT * FROM campaigns WHERE file_sha256 = ? AND seed = ? AND backend = ? AND quick = ? AND "+complete+" ORDER BY id DESC LIMIT 1",
		fileSHA256, seed, backend, quick, CampaignComplete)
	if err != nil || len(c) == 0 {
		return nil, s.wrap("read campaigns", err)
	}
	return &c[0], nil
}

// Done returns the runs of a campaign that are complete and valid, with their
// ids: what a resumed campaign need not run again.
func (s *Store) Done(ctx context.Context, campaignID int64) (map[RunKey]int64, error) {
	runs, err := s.Runs(ctx, Filter{CampaignIDs: []int64{campaignID}, ValidOnly: true})
	if err != nil {
		return nil, err
	}
	done := make(map[RunKey]int64, len(runs))
	for i := range runs {
		done[runs[i].Key()] = runs[i].ID
	}
	return done, nil
}

// Attempts returns how often each run of a campaign was tried so far.
func (s *Store) Attempts(ctx context.Context, campaignID int64) (map[RunKey]int, error) {
	runs, err := s.Runs(ctx, Filter{CampaignIDs: []int64{campaignID}})
	if err != nil {
		return nil, err
	}
	n := make(map[RunKey]int)
	for i := range runs {
		n[runs[i].Key()]++
	}
	return n, nil
}

// Filter selects runs; the zero Filter selects all.
type Filter struct {
	CampaignIDs []int64 // none: all campaigns
	RunIDs      []int64 // none: all runs
	ValidOnly   bool    // only complete, valid runs
}

// where returns the condition on runs (aliased r) and its arguments.
func (f Filter) where() (string, []any) {
	var (
		conds = []string{"1"}
		args  []any
	)
	in := func(col string, ids []int64) {
		if len(ids) == 0 {
			return
		}
		conds = append(conds, col+" IN ("+strings.TrimSuffix(strings.Repeat("?,", len(ids)), ",")+")")
		for _, id := range ids {
			args = append(args, id)
		}
	}
	in("r.campaign_id", f.CampaignIDs)
	in("r.id", f.RunIDs)
	if f.ValidOnly {
		conds = append(conds, "r.valid")
	}
	return strings.Join(conds, " AND "), args
}

// Runs returns the selected runs in the order in which they were saved.
func (s *Store) Runs(ctx context.Context, f Filter) ([]Run, error) {
	where, args := f.where()
	var out []Run
	err := s.r.SelectContext(ctx, &out, "SELECT r.* FROM runs r WHERE "+where+" ORDER BY r.id", args...)
	return out, s.wrap("read runs", err)
}

// Run returns one run; an error wraps ErrNotFound when it is not there.
func (s *Store) Run(ctx context.Context, id int64) (*Run, error) {
	var r Run
	err := s.r.GetContext(ctx, &r, "SELECT * FROM runs WHERE id = ?", id)
	if err != nil {
		return nil, s.wrap("read run", notFound(err, "run", id))
	}
	return &r, nil
}

// selectRows reads the rows of a table that belong to the selected runs, in
// the order of its primary key.
func selectRows[T any](ctx context.Context, s *Store, t table, f Filter, order string) ([]T, error) {
	where, args := f.where()
	var out []T
	err := s.r.SelectContext(ctx, &out, fmt.Sprintf("SELECT t.* FROM %s t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, %s", t.name, where, order), args...)
	return out, s.wrap("read "+t.name, err)
}

// Nodes returns the nodes of the selected runs.
func (s *Store) Nodes(ctx context.Context, f Filter) ([]Node, error) {
	return selectRows[Node](ctx, s, nodesTable, f, "t.node")
}

// Links returns the links of the selected runs.
func (s *Store) Links(ctx context.Context, f Filter) ([]Link, error) {
	return selectRows[Link](ctx, s, linksTable, f, "t.src, t.dst")
}

// Flows returns the flows of the selected runs.
func (s *Store) Flows(ctx context.Context, f Filter) ([]Flow, error) {
	return selectRows[Flow](ctx, s, flowsTable, f, "t.flow")
}

// NodeStats returns the counters of the selected runs.
func (s *Store) NodeStats(ctx context.Context, f Filter) ([]NodeStat, error) {
	return selectRows[NodeStat](ctx, s, nodeStatsTable, f, "t.node, t.ac")
}

// Pipes returns both directions of the wired links of the selected runs.
func (s *Store) Pipes(ctx context.Context, f Filter) ([]Pipe, error) {
	return selectRows[Pipe](ctx, s, pipesTable, f, "t.pipe, t.src")
}

// Events returns the events of the selected runs.
func (s *Store) Events(ctx context.Context, f Filter) ([]Event, error) {
	return selectRows[Event](ctx, s, eventsTable, f, "t.seq")
}

// Artifacts returns the artifacts of the selected runs.
func (s *Store) Artifacts(ctx context.Context, f Filter) ([]Artifact, error) {
	return selectRows[Artifact](ctx, s, artifactsTable, f, "t.path")
}

// Samples calls f with every sample of one run, ordered by flow, side, node
// and time, and stops at the first error. The sample is only valid during the
// call: a run has some 100,000 of them.
func (s *Store) Samples(ctx context.Context, runID int64, f func(*Sample) error) error {
	rows, err := s.r.QueryxContext(ctx, "SELECT * FROM samples WHERE run_id = ? ORDER BY flow, side, node, t_us", runID)
	if err != nil {
		return s.wrap("read samples", err)
	}
	defer rows.Close()
	var smp Sample
	for rows.Next() {
		if err := rows.StructScan(&smp); err != nil {
			return s.wrap("read samples", err)
		}
		if err := f(&smp); err != nil {
			return err
		}
	}
	return s.wrap("read samples", rows.Err())
}

// Messages calls f with every message of one run, ordered by flow and number, and
// stops at the first error. The message is only valid during the call: a run may
// have a million of them.
func (s *Store) Messages(ctx context.Context, runID int64, f func(*Message) error) error {
	rows, err := s.r.QueryxContext(ctx, "SELECT * FROM messages WHERE run_id = ? ORDER BY flow, message", runID)
	if err != nil {
		return s.wrap("read messages", err)
	}
	defer rows.Close()
	var m Message
	for rows.Next() {
		if err := rows.StructScan(&m); err != nil {
			return s.wrap("read messages", err)
		}
		if err := f(&m); err != nil {
			return err
		}
	}
	return s.wrap("read messages", rows.Err())
}

// SourceRTTs returns for each flow of a run the mean of the smoothed round-trip
// times, in µs, that its source's samples hold within the measured interval. A
// flow without such samples is not in it.
func (s *Store) SourceRTTs(ctx context.Context, r *Run) (map[int]float64, error) {
	var rows []struct {
		Flow int     `db:"flow"`
		RTT  float64 `db:"rtt"`
	}
	err := s.r.SelectContext(ctx, &rows, `SELECT flow, avg(srtt_us) AS rtt FROM samples
		WHERE run_id = ? AND side = ? AND srtt_us IS NOT NULL AND t_us BETWEEN ? AND ? GROUP BY flow`,
		r.ID, SideSrc, int64(r.WarmupS*1e6), int64((r.WarmupS+r.DurationS)*1e6))
	if err != nil {
		return nil, s.wrap("read samples", err)
	}
	rtt := make(map[int]float64, len(rows))
	for _, r := range rows {
		rtt[r.Flow] = r.RTT
	}
	return rtt, nil
}

// DataFrames returns how many data frames of Hop each flow of a run made its
// nodes send, repeats included, over the whole run. A flow without such frames
// is not in it.
func (s *Store) DataFrames(ctx context.Context, runID int64) (map[int]int64, error) {
	var rows []struct {
		Flow   int   `db:"flow"`
		Frames int64 `db:"frames"`
	}
	err := s.r.SelectContext(ctx, &rows, `SELECT flow, sum(frames) AS frames FROM (
		SELECT flow, max(data_frames) AS frames FROM samples WHERE run_id = ? AND data_frames IS NOT NULL GROUP BY flow, side, node) GROUP BY flow`, runID)
	if err != nil {
		return nil, s.wrap("read samples", err)
	}
	frames := make(map[int]int64, len(rows))
	for _, r := range rows {
		frames[r.Flow] = r.Frames
	}
	return frames, nil
}

// Delivered calls f with the cumulative application bytes that each flow of a
// run had delivered at its destination, ordered by flow and time. It reads
// three columns of one side: a report goes through every run.
func (s *Store) Delivered(ctx context.Context, runID int64, f func(flow int, tUs, bytes int64)) error {
	rows, err := s.r.QueryContext(ctx, "SELECT flow, t_us, delivered_bytes FROM samples WHERE run_id = ? AND side = ? AND delivered_bytes IS NOT NULL ORDER BY flow, side, node, t_us", runID, SideDst)
	if err != nil {
		return s.wrap("read samples", err)
	}
	defer rows.Close()
	for rows.Next() {
		var flow int
		var t, b int64
		if err := rows.Scan(&flow, &t, &b); err != nil {
			return s.wrap("read samples", err)
		}
		f(flow, t, b)
	}
	return s.wrap("read samples", rows.Err())
}
