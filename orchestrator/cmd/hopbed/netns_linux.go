package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/bench"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
)

// parts are the roles in which hopbed starts itself again.
func parts() reexec.Table {
	return reexec.Table{
		bench.Part:    bench.NodeMain,
		session.Part:  func() int { return session.Main(version()) },
		emulator.Part: func() int { return emulator.Main(os.Stdin, os.Stdout) },
	}
}

// openNetns makes the back end of emulated nodes. Where this process lacks the
// privileges, the whole program runs once more as root of a user namespace, and
// the error is that program's exit status.
func openNetns(stderr *os.File) (backend.Backend, error) {
	if ran, status, err := netns.EnsureRoot(); err != nil {
		return nil, err
	} else if ran {
		return nil, &exit{code: status}
	}
	dir, err := journal.DefaultDir()
	if err != nil {
		return nil, err
	}
	// What an earlier, killed run left is removed first: it would disturb the
	// measurement.
	if err := sweep(context.Background(), dir, stderr, false); err != nil {
		fmt.Fprintln(stderr, "warning: leftovers of an earlier run:", clean2(err.Error()))
	}
	j, err := journal.Open(dir, journal.NewTag())
	if err != nil {
		return nil, err
	}
	return live.New(live.Options{
		Name:       "netns",
		Controller: version(),
		Tag:        j.Tag(),
		Env:        []string{netns.TagVariable + "=" + j.Tag()},
		Journal:    j.Record,
		Close:      j.Close,
		NewDriver: func() (node.Driver, error) {
			return netns.New(netns.Options{Part: session.Part, Tag: j.Tag(), Journal: j.Record})
		},
	}), nil
}

// sweep removes what killed controllers left, by their journals.
func sweep(ctx context.Context, dir string, w *os.File, verbose bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	all, err := journal.Clean(ctx, dir)
	left := 0
	for _, c := range all {
		if c.Alive {
			if verbose {
				fmt.Fprintf(w, "%s: in use by %s, left alone\n", clean(c.Tag), clean(c.Owner))
			}
			continue
		}
		if verbose && len(c.Removed)+len(c.Left) == 0 {
			fmt.Fprintf(w, "%s was killed and left nothing but its journal\n", clean(c.Owner))
		}
		for _, r := range c.Removed {
			fmt.Fprintf(w, "removed what %s left: %s\n", clean(c.Owner), clean(r))
		}
		for _, l := range c.Left {
			left++
			fmt.Fprintf(w, "could not remove: %s\n", clean(l))
		}
	}
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%d things could not be removed", left)
	}
	if verbose && len(all) == 0 {
		fmt.Fprintln(w, "nothing to clean")
	}
	return nil
}
