package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// NodesOptions configure Nodes.
type NodesOptions struct {
	Common
	Counts []int // numbers of nodes; empty = 10, 100, 400
	Repeat int   // times each; 0 = 3
}

// NodesResult is the time of one start and end, in the host's time.
type NodesResult struct {
	Nodes    int
	Up, Down time.Duration // until every node has greeted; until all are gone
}

// Nodes measures how long namespaces with a process each take to come up, to
// greet, and to go, and prints a table.
func Nodes(ctx context.Context, w io.Writer, o NodesOptions) (all []NodesResult, err error) {
	if len(o.Counts) == 0 {
		o.Counts = []int{10, 100, 400}
	}
	if o.Repeat == 0 {
		o.Repeat = 3
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// What was measured before an error is worth showing.
	defer func() { err = errors.Join(err, tw.Flush()) }()
	fmt.Fprintln(tw, "nodes\tup (s)\tdown (s)\tup per node (ms)\t")
	for _, n := range o.Counts {
		for range o.Repeat {
			r, err := nodes(ctx, o.Common, n)
			if err != nil {
				return all, err
			}
			all = append(all, r)
			fmt.Fprintf(tw, "%d\t%.3f\t%.3f\t%.2f\t\n", n, r.Up.Seconds(), r.Down.Seconds(), r.Up.Seconds()*1000/float64(n))
		}
	}
	return all, nil
}

func nodes(ctx context.Context, c Common, n int) (NodesResult, error) {
	t0 := time.Now()
	l, err := startNodes(ctx, c, n, nil)
	if err != nil {
		return NodesResult{}, fmt.Errorf("%d nodes: %w", n, err)
	}
	t1 := time.Now()
	if err := l.close(); err != nil {
		return NodesResult{}, fmt.Errorf("%d nodes: %w", n, err)
	}
	return NodesResult{Nodes: n, Up: t1.Sub(t0), Down: time.Since(t1)}, nil
}
