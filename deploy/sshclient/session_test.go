package sshclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
)

func TestOutputIsBounded(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, sshclient.Options{MaxOutput: 100_000}, s.Node("n01"))
	for _, script := range []string{"yes", "yes >&2"} {
		out, errs, err := c.Run(within(t), nil, "sh", "-c", script)
		var over *sshclient.OutputError
		if !errors.As(err, &over) || over.Limit != 100_000 || over.Node != "n01" || len(out)+len(errs) != 100_000 {
			t.Errorf("%s: %v with %d and %d bytes", script, err, len(out), len(errs))
		}
	}
	out, _, err := c.Run(within(t), nil, "head", "-c", "100000", "/dev/zero")
	if err != nil || len(out) != 100_000 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, _, err := c.Run(ctx, nil, "sh", "-c", "echo begun; sleep 100; echo secret-argument")
	wantReason(t, err, sshclient.TimedOut, "n01", "sh did not end in time")
	if strings.Contains(err.Error(), "secret") || string(out) != "begun\n" {
		t.Errorf("%v, %q", err, out)
	}
	// The connection serves on.
	if _, _, err := c.Run(within(t), nil, "true"); err != nil {
		t.Error(err)
	}
}

// zeros never ends. What it gives is what was in the buffer.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A program that ends without reading its input, as on a full disk, tells its own
// end.
func TestProgramLeavesItsInput(t *testing.T) {
	t.Parallel()
	c := connect(t)
	var exit *sshclient.ExitError
	_, _, err := c.Run(within(t), io.LimitReader(zeros{}, 50<<20), "sh", "-c", "head -c 1000 >/dev/null; echo disk full >&2; exit 28")
	if !errors.As(err, &exit) || exit.Status != 28 || exit.Stderr != "disk full" {
		t.Errorf("%v", err)
	}
	out, _, err := c.Run(within(t), io.LimitReader(zeros{}, 20<<20), "wc", "-c")
	if err != nil || strings.TrimSpace(string(out)) != "20971520" {
		t.Errorf("%q, %v", out, err)
	}
}

// A process is not held up by one whose output nobody reads.
func TestUnreadOutput(t *testing.T) {
	c := connect(t)
	p, err := c.Start(within(t), nil, "yes")
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := c.Run(within(t), nil, "echo", "x"); err != nil || string(out) != "x\n" {
		t.Errorf("%q, %v", out, err)
	}
	b := make([]byte, 10)
	if _, err := io.ReadFull(p, b); err != nil || string(b) != "y\ny\ny\ny\ny\n" {
		t.Errorf("%q, %v", b, err)
	}
	p.Close()
	wantReason(t, p.Wait(), sshclient.Closed, "yes")
}

// More programs than a connection may have at once wait for each other, and a server
// that allows fewer says so.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Config: []string{"MaxSessions 2"}})
	c := dial(t, sshclient.Options{MaxSessions: 2}, s.Node("n01"))
	for _, err := range sshclient.Each(within(t), 6, 6, func(int) error {
		_, _, err := c.Run(within(t), nil, "sleep", "0.1")
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	c = dial(t, sshclient.Options{}, s.Node("n01"))
	for range 2 {
		p, err := c.Start(within(t), nil, "cat")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
	}
	_, err := c.Start(within(t), nil, "cat")
	wantReason(t, err, sshclient.Sessions, "MaxSessions")

	one := dial(t, sshclient.Options{MaxSessions: 1}, s.Node("n01"))
	p, err := one.Start(within(t), nil, "cat")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = one.Start(ctx, nil, "cat")
	wantReason(t, err, sshclient.TimedOut, "as many programs as one connection may have")
	p.CloseWrite()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, _, err := one.Run(within(t), nil, "true"); err != nil {
		t.Error(err)
	}
}

// A key that may only run its own command, or nothing, is told apart.
func TestForcedCommand(t *testing.T) {
	key := sshtest.Key(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{"command=\"echo forced\" " + sshtest.Read(t, key+".pub")}})
	n := s.Node("n01")
	n.Identity = []string{key}
	out, _, err := dial(t, sshclient.Options{}, n).Run(within(t), nil, "uname")
	if err != nil || string(out) != "forced\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// What a node writes does not drive the terminal of who reads the error.
func TestLastWordsArePlain(t *testing.T) {
	c := connect(t)
	_, errs, err := c.Run(within(t), nil, "printf", "%b", "\\0033[31mred\\n\\0007\\0377")
	if err != nil || len(errs) != 0 {
		t.Fatal(err)
	}
	_, errs, err = c.Run(within(t), nil, "sh", "-c", "printf '\\033[31mred\\nline\\377' >&2; exit 1")
	var exit *sshclient.ExitError
	if !errors.As(err, &exit) || exit.Stderr != "?[31mred line?" || !bytes.Contains(errs, []byte("\x1b[31m")) {
		t.Errorf("%v, %q", err, errs)
	}
}
