package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/bundle/daemon"
	external "github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/bench"
	"github.com/hopbed/hopbed/orchestrator/lab"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
	"github.com/hopbed/hopbed/orchestrator/node/sshns"
)

// parts are the roles in which hopbed starts itself again.
func parts() reexec.Table {
	return reexec.Table{
		bench.Part:         bench.NodeMain,
		session.Part:       func() int { return session.Main(version()) },
		sshns.Part:         sshns.Main,
		external.GuardPart: external.Guard,
		emulator.Part:      func() int { return emulator.Main(os.Stdin, os.Stdout) },
		lab.ExecPart:       lab.ExecMain,
		lab.GuardianPart:   func() int { return lab.GuardianMain(netns.Vacate) },
		keeperPart:         keeperMain,
	}
}

// ensureRoot gives this process the privileges that nodes need. Where it lacks
// them, the whole program runs once more as root of a user namespace, and the
// error is that program's exit status.
func ensureRoot(ctx context.Context) error {
	endOrderly(ctx) // signals are passed on to that program, which ends in order
	ran, status, err := netns.EnsureRoot()
	if err == nil && ran {
		err = &exit{code: status}
	}
	return err
}

// openNetns makes the back end of emulated nodes.
func openNetns(ctx context.Context, o *opening) (backend.Backend, error) {
	warn := o.warn
	if err := ensureRoot(ctx); err != nil {
		return nil, err
	}
	if o.viaSSH {
		if err := sshns.Available(); err != nil {
			return nil, err
		}
	}
	j, record, err := openJournal(ctx, warn)
	if err != nil {
		return nil, err
	}
	opt := live.Options{
		Name:       "netns",
		Controller: version(),
		Tag:        j.Tag(),
		Env:        []string{netns.TagVariable + "=" + j.Tag()},
		Journal:    record,
		Close: func() error { // agents that were killed could not
			_, err := daemon.SweepStorage(os.TempDir())
			return errors.Join(err, j.Close())
		},
		NewDriver: func() (node.Driver, error) {
			return netns.New(netns.Options{Part: session.Part, Tag: j.Tag(), Journal: record})
		},
	}
	if o.viaSSH {
		dir, err := j.MkdirTemp("", "ssh")
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}
		opt.Facts = map[string]string{"via": "ssh"}
		opt.BoardByPID, opt.Watchdog = true, proto.DefaultWatchdog
		opt.NewDriver = func() (node.Driver, error) {
			return sshns.New(sshns.Options{Dir: dir, Agents: ownProgram{}, Tag: j.Tag(), Journal: record})
		}
		end := opt.Close
		opt.Close = func() error { return errors.Join(os.RemoveAll(dir), end()) }
	}
	return live.New(opt), nil
}

// openJournal removes what killed controllers left, and begins a journal. record
// notes what is about to be created.
func openJournal(ctx context.Context, warn func(string)) (j *journal.Journal, record func(kind, id string) error, err error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return nil, nil, err
	}
	// What an earlier, killed run left is removed first: it would disturb the
	// measurement.
	all, err := sweep(ctx, dir)
	for _, c := range all {
		switch {
		case c.Alive:
			warn(fmt.Sprintf("another hopbed is at work (%s): two at once disturb each other, and lateness makes runs invalid", c.Owner))
		case len(c.Removed) > 0:
			warn(fmt.Sprintf("removed what %s left: %s", c.Owner, strings.Join(c.Removed, ", ")))
		}
	}
	stored, err2 := daemon.SweepStorage(os.TempDir())
	if len(stored) > 0 {
		warn("removed bundles that killed agents left: " + strings.Join(stored, ", "))
	}
	if err := errors.Join(err, err2); err != nil {
		warn("leftovers of an earlier run: " + err.Error())
	}
	if j, err = journal.Open(dir, journal.NewTag()); err != nil {
		return nil, nil, err
	}
	// Without a journal nothing may be created, in no run.
	return j, func(kind, id string) error {
		if err := j.Record(kind, id); err != nil {
			return &backend.Fatal{Err: err}
		}
		return nil
	}, nil
}

// ownProgram is the source of agents for this host: this program is one.
type ownProgram struct{}

// Agent implements agents.Source.
func (ownProgram) Agent(_ context.Context, arch string) (*agents.Binary, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return agents.Open(exe, arch)
}

// sweep removes what killed controllers left, by their journals. The error says
// what could not be removed.
func sweep(ctx context.Context, dir string) ([]journal.Cleaned, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	all, err := journal.Clean(ctx, dir)
	errs := []error{err}
	for _, c := range all {
		for _, l := range c.Left {
			errs = append(errs, fmt.Errorf("could not be removed: %s", l))
		}
	}
	return all, errors.Join(errs...)
}
