package sshclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
)

// patience is how long a login may take that is not about time: a busy machine has
// other things to do.
const patience = 2 * time.Minute

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

func patient(o sshclient.Options) sshclient.Options {
	if o.Timeout == 0 && o.Config == nil {
		o.Timeout = patience
	}
	return o
}

func dial(t *testing.T, o sshclient.Options, n *inventory.Node) sshclient.Client {
	t.Helper()
	c, err := sshclient.New(patient(o)).Dial(within(t), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// connect starts a server of the test's and connects to it.
func connect(t *testing.T) sshclient.Client {
	t.Helper()
	return dial(t, sshclient.Options{}, sshtest.Start(t, sshtest.Options{}).Node("n01"))
}

// wantReason wants an error with a reason and words in its text.
func wantReason(t *testing.T, err error, r sshclient.Reason, words ...string) {
	t.Helper()
	if !errors.Is(err, r) {
		t.Fatalf("got %v, want %q", err, string(r))
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r\x1b") {
		t.Errorf("%q is not one plain line", err)
	}
}

func TestRunAndStart(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, sshclient.Options{}, s.Node("n01"))
	ctx := within(t)

	out, errs, err := c.Run(ctx, strings.NewReader("from stdin"), "sh", "-c", "cat; echo to stderr >&2")
	if err != nil || string(out) != "from stdin" || string(errs) != "to stderr\n" {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	var exit *sshclient.ExitError
	if out, _, err = c.Run(ctx, nil, "sh", "-c", "echo partial; echo why >&2; exit 7"); !errors.As(err, &exit) || exit.Status != 7 || exit.Signal != "" || exit.Stderr != "why" || string(out) != "partial\n" {
		t.Errorf("%q, %#v", out, err)
	}
	if _, _, err = c.Run(ctx, nil, "sh", "-c", "kill -TERM $$"); !errors.As(err, &exit) || exit.Signal != "TERM" || exit.Status != 128+15 {
		t.Errorf("%#v", err)
	}
	if _, _, err = c.Run(ctx, nil, "/no/such/program"); !errors.As(err, &exit) || exit.Status != 127 {
		t.Errorf("%#v", err)
	}

	var log bytes.Buffer
	p, err := c.Start(ctx, &log, "sh", "-c", "while read line; do echo \"got $line\"; done; echo bye >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	for _, w := range []string{"one", "two"} {
		if _, err := p.Write([]byte(w + "\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Read(buf); err != nil || string(buf[:n]) != "got "+w+"\n" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	p.CloseWrite()
	if err := p.Wait(); !errors.As(err, &exit) || exit.Status != 3 || log.String() != "bye\n" {
		t.Errorf("%v, %q", err, log.String())
	}
	if again := p.Wait(); again != err && !errors.As(again, &exit) {
		t.Errorf("the second Wait says %v", again)
	}

	// OpenSSH passes signals on only where the session is not root's.
	p, err = c.Start(ctx, nil, "sleep", "5")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal("SIGterm"); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if err := p.Wait(); !errors.As(err, &exit) || exit.Signal != "TERM" {
			t.Errorf("%v", err)
		}
		if p, err = c.Start(ctx, nil, "sleep", "5"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantReason(t, p.Wait(), sshclient.Closed, "sleep")
	if _, err := p.Read(buf); err == nil || err == io.EOF {
		t.Errorf("Read of a closed session: %v", err)
	}

	if c.Err() != nil {
		t.Errorf("an open connection says %v", c.Err())
	}
	if c.Remote().String() != s.Addr.String() {
		t.Errorf("connected to %v", c.Remote())
	}
	c.Close()
	<-c.Done()
	wantReason(t, c.Err(), sshclient.Closed, "n01")
	if _, _, err := c.Run(ctx, nil, "true"); !errors.Is(err, sshclient.Closed) {
		t.Errorf("Run after Close: %v", err)
	}
}
