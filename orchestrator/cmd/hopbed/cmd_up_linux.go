package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/lab"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
)

// keeperPart is `hopbed up` in the background.
const keeperPart = "hopbed-keeper"

func keeperMain() int {
	return command(append([]string{"hopbed"}, os.Args[1:]...), os.Stdout, os.Stderr)
}

// labPlace is where labs are known by their names.
func labPlace() (*lab.Place, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return nil, err
	}
	return lab.Open(filepath.Dir(dir))
}

func upAction(c *cli.Context, stderr *os.File) error {
	if c.Bool("keeper") {
		return keeperAction(c, stderr)
	}
	s, err := chooseStanding(c)
	if err != nil {
		return err
	}
	if err := lab.CheckName(s.name); err != nil {
		return &exit{exitUsage, err}
	}
	place, err := labPlace()
	if err != nil {
		return err
	}
	if err := vacant(place, s.name); err != nil {
		return err
	}
	if err := tap.Probe(); err != nil {
		return err
	}
	warn := func(text string) { fmt.Fprintln(stderr, "hopbed:", clean(text)) }
	if c.Bool("foreground") {
		if err := ensureRoot(c.Context); err != nil {
			return err
		}
		for _, n := range s.notes {
			warn(n)
		}
		return keep(c.Context, c, s, stderr, warn, func(k *lab.Status) error { return printLab(c.App.Writer, k, true) })
	}
	st, err := startKeeper(c, place, s.name)
	if err != nil {
		return err
	}
	for _, n := range append(s.notes, st.Notes...) {
		warn(n)
	}
	return printLab(c.App.Writer, st.Status, true)
}

// vacant refuses a name that a lab has.
func vacant(place *lab.Place, name string) error {
	all, err := place.List()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name == name && e.Alive {
			return &lab.Taken{Entry: e}
		}
	}
	return nil
}

// word is what a keeper says, once, to the command that started it.
type word struct {
	Status *lab.Status `json:"status,omitempty"`
	Notes  []string    `json:"notes,omitempty"`
	Error  string      `json:"error,omitempty"`
	Code   int         `json:"code,omitempty"`
}

// startKeeper starts the keeper and returns when the network is ready. After an
// error nothing is left.
func startKeeper(c *cli.Context, place *lab.Place, name string) (*word, error) {
	endOrderly(c.Context)
	log, err := os.OpenFile(place.Log(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lab's log: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := reexec.Command(keeperPart, keeperArgs(c, name))
	cmd.Stdout, cmd.Stderr = w, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this command and its terminal
	err = cmd.Start()
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	said := make(chan *word, 1)
	go func() {
		line, err := bufio.NewReader(r).ReadBytes('\n')
		var s word
		if err == nil {
			err = json.Unmarshal(line, &s)
		}
		if err != nil {
			close(said)
			return
		}
		said <- &s
	}()
	select {
	case s, ok := <-said:
		switch {
		case ok && s.Status != nil:
			return s, nil
		case ok:
			_ = cmd.Wait() // its status is in what it said
			return nil, &exit{s.Code, errors.New(s.Error)}
		}
		return nil, keeperDied(cmd, place.Log(name))
	case <-c.Context.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
		_ = cmd.Wait()
		return nil, c.Context.Err()
	}
}

// keeperDied explains a keeper that ended without a word.
func keeperDied(cmd *exec.Cmd, log string) error {
	_ = cmd.Wait()
	text := ""
	if b, err := os.ReadFile(log); err == nil {
		const most = 2 << 10
		if len(b) > most {
			b = b[len(b)-most:]
		}
		if s := strings.TrimSpace(string(b)); s != "" {
			text = "; the end of its log:\n" + indent(s)
		}
	}
	return fmt.Errorf("the keeper ended before the network was ready (%s); its log is %s%s", cmd.ProcessState, log, text)
}

// keeperAction is the keeper's side of startKeeper.
func keeperAction(c *cli.Context, log *os.File) error {
	var notes []string
	warn := func(text string) { notes = append(notes, text) }
	told := false
	tell := func(w *word) error {
		told = true
		b, err := json.Marshal(w)
		if err == nil {
			_, err = os.Stdout.Write(append(b, '\n'))
		}
		if err != nil {
			return fmt.Errorf("nobody waits for the network any more: %w", err)
		}
		// The command that waits shall not be held by what is started later.
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		return syscall.Dup3(int(null.Fd()), 1, 0)
	}
	survivePipes()
	s, err := chooseStanding(c)
	if err == nil {
		err = keep(c.Context, c, s, log, warn, func(k *lab.Status) error { return tell(&word{Status: k, Notes: notes}) })
	}
	if e, ok := errors.AsType[*exit](err); ok && e.err == nil {
		return err // the one in the user namespace has said it
	}
	if err != nil && !told {
		code, text := verdict(err)
		_ = tell(&word{Error: text, Code: code})
		return &exit{code: code}
	}
	return err
}

// keep brings the network up, calls ready, and keeps it until it is taken down.
// Whatever the error, nothing is left.
func keep(ctx context.Context, c *cli.Context, s *standing, log io.Writer, warn func(string), ready func(*lab.Status) error) (err error) {
	if err := ensureRoot(ctx); err != nil {
		return err
	}
	place, err := labPlace()
	if err != nil {
		return err
	}
	claim, before, err := place.Claim(s.name)
	if err != nil {
		return err
	}
	if f, ok := log.(*os.File); ok && c.Bool("keeper") {
		_ = f.Truncate(0) // of an earlier lab of the name
	}
	if before != nil {
		warn((&lab.Ended{Entry: *before}).Error())
	}
	k := &keeping{c: c, s: s, place: place, claim: claim, log: log}
	err = k.run(ctx, warn, ready)
	if err != nil && !k.stood && c.Bool("keeper") {
		_ = os.Remove(place.Log(s.name)) // what is in it is the error
	}
	if err != nil && k.stood && ctx.Err() == nil {
		k.entry.Ended = err.Error()
		return errors.Join(err, claim.Write(k.entry), claim.Leave())
	}
	return errors.Join(err, claim.Release())
}

// keeping is the state of a keeper.
type keeping struct {
	c     *cli.Context
	s     *standing
	place *lab.Place
	claim *lab.Claim
	log   io.Writer
	entry lab.Entry
	stood bool // the network was ready
}

func (k *keeping) run(ctx context.Context, warn func(string), ready func(*lab.Status) error) (err error) {
	b, j, err := openStanding(ctx, warn)
	if err != nil {
		return err
	}
	var keeper *lab.Keeper
	var ended []string
	var release func()
	defer func() {
		// The journal last: it knows what must not be left.
		err = errors.Join(err, b.Close())
		if release != nil {
			release()
		}
		if keeper != nil {
			keeper.Closed(ended, err)
		}
	}()
	folder, err := j.MkdirTemp(k.place.Dir(), "lab")
	if err != nil {
		return err
	}
	k.entry = lab.Entry{Name: k.s.name, Tag: j.Tag(), Folder: folder, Experiment: k.s.file, PID: os.Getpid(), Since: time.Now()}
	if err := k.claim.Write(k.entry); err != nil {
		return err
	}
	scenario, settings, err := plainSettings(k.s.scenario)
	if err != nil {
		return err
	}
	net, err := stand(ctx, b, scenario, live.Standing{NoRoutes: k.c.Bool("no-routes"), IPv6: k.c.Bool("ipv6")}, k.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, net.Close(ctx)) }()
	var logFile *os.File
	if f, ok := k.log.(*os.File); ok {
		logFile = f
	}
	dir, err := journal.DefaultDir()
	if err != nil {
		return err
	}
	if release, err = lab.Guard(k.entry, dir, k.place, net.Nodes(), logFile); err != nil {
		return err
	}
	keeper, err = lab.NewKeeper(lab.Options{
		Entry: k.entry, Log: k.place.Log(k.s.name), Routes: !k.c.Bool("no-routes"), IPv6: k.c.Bool("ipv6"), Rootless: netns.Rootless(),
		Settings: settings, Network: net, Env: inherited(), Output: k.log,
	})
	if err != nil {
		return err
	}
	var failed error
	ended, failed = keeper.Serve(ctx, func() error {
		k.stood = true
		return ready(keeper.Status())
	})
	return failed
}

// inherited is what programs in nodes have to know of a user namespace that
// hopbed made.
func inherited() []string {
	if netns.Rootless() {
		return []string{"HOPBED_ROOTLESS=1"}
	}
	return nil
}
