package store

import "context"

// Progress is what Hop and UDP say of a flow at one node and moment, as far as they
// do; the meanings are those of Sample.
type Progress struct {
	Flow int
	Side string
	Node int
	TUs  int64

	BlocksInFlight, Tokens, Datagrams, DatagramsLost Count
	BlocksHeld, BlocksWithheld                       Opt[int64]
}

// Progress calls f with what Hop and UDP said in a run, ordered by flow, side, node
// and time. It reads these columns alone: a report goes through every run.
func (s *Store) Progress(ctx context.Context, runID int64, f func(*Progress)) error {
	rows, err := s.r.QueryContext(ctx, `SELECT flow, side, node, t_us, blocks_in_flight, blocks_held, blocks_withheld, tokens, datagrams, datagrams_lost
		FROM samples WHERE run_id = ? AND (blocks_held IS NOT NULL OR datagrams IS NOT NULL) ORDER BY flow, side, node, t_us`, runID)
	if err != nil {
		return s.wrap("read samples", err)
	}
	defer rows.Close()
	var p Progress
	for rows.Next() {
		if err := rows.Scan(&p.Flow, &p.Side, &p.Node, &p.TUs, &p.BlocksInFlight, &p.BlocksHeld, &p.BlocksWithheld, &p.Tokens, &p.Datagrams, &p.DatagramsLost); err != nil {
			return s.wrap("read samples", err)
		}
		f(&p)
	}
	return s.wrap("read samples", rows.Err())
}
