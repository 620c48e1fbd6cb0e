package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runningHop is a command of hopbed that runs until it is stopped.
type runningHop struct {
	t      *testing.T
	stderr *os.File
	stdout bytes.Buffer
	stop   context.CancelFunc
	over   chan error
}

func startHop(t *testing.T, args ...string) *runningHop {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	r := &runningHop{t: t, stderr: f, over: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	app := newApp(&output{w: &r.stdout}, f)
	go func() { r.over <- app.RunContext(ctx, permute(app, append([]string{"hopbed"}, args...))) }()
	t.Cleanup(func() { cancel(); f.Close() })
	return r
}

func (r *runningHop) said() string {
	b, _ := os.ReadFile(r.stderr.Name())
	return string(b)
}

// address waits until the node is there.
func (r *runningHop) address() string {
	r.t.Helper()
	return r.find(`at UDP (\S+)`)
}

func (r *runningHop) find(pattern string) string {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if m := re.FindStringSubmatch(r.said()); m != nil {
			return m[len(m)-1]
		}
		select {
		case err := <-r.over:
			r.t.Fatalf("it has ended: %v\n%s", err, r.said())
		default:
		}
	}
	r.t.Fatalf("it has not said %s:\n%s", pattern, r.said())
	return ""
}

func (r *runningHop) wait() error {
	r.t.Helper()
	select {
	case err := <-r.over:
		return err
	case <-time.After(60 * time.Second):
		r.t.Fatalf("it does not end:\n%s", r.said())
		return nil
	}
}

// A file goes over a daemon in the middle to another daemon's folder and to a
// receiver's standard output; what is refused has an exit status.
func TestHopMovesFiles(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in") // it is made
	data := strings.Repeat("A file that is a little longer than a block.\n", 40_000)
	write(t, filepath.Join(dir, "report.txt"), data)
	write(t, filepath.Join(dir, "note.txt"), "short")
	write(t, filepath.Join(dir, "there.yaml"), "id: 7\nlisten: 127.0.0.1:0\ndir: "+in+"\nmax-size: 5MB\n")

	there := startHop(t, "hop", "daemon", "--config", filepath.Join(dir, "there.yaml"))
	relay := startHop(t, "hop", "daemon", "--id", "6", "--listen", "127.0.0.1:0", "--peer", there.address())
	relay.find(`neighbour (7) at`)
	status, _, stderr := hopbed(t, dir, "hop", "send", "report.txt", "note.txt", "7", "--via", relay.address(), "--listen", "127.0.0.1:0")
	if status != exitOK || !strings.Contains(stderr, "report.txt: 1760 KB") && !strings.Contains(stderr, "report.txt: 1800") {
		t.Errorf("send: status %d: %s", status, stderr)
	}
	for name, want := range map[string]string{"report.txt": data, "note.txt": "short"} {
		if got, err := os.ReadFile(filepath.Join(in, name)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	status, _, stderr = hopbed(t, dir, "hop", "send", "note.txt", "7", "--via", relay.address(), "--listen", "127.0.0.1:0", "--quiet")
	if status != exitError || !strings.Contains(stderr, "nothing is overwritten") {
		t.Errorf("send again: status %d: %s", status, stderr)
	}

	// To standard output, directly.
	one := startHop(t, "hop", "receive", "--listen", "127.0.0.1:0", "--dir", "-")
	if status, _, stderr := hopbed(t, dir, "hop", "send", "report.txt", one.address(), "--name", "x", "--listen", "127.0.0.1:0"); status != exitOK {
		t.Errorf("send: status %d: %s", status, stderr)
	}
	if err := one.wait(); err != nil || one.stdout.String() != data {
		t.Errorf("%d bytes on standard output, %v", one.stdout.Len(), err)
	}
	for _, d := range []*runningHop{relay, there} {
		d.stop()
		if err := d.wait(); err != nil {
			t.Errorf("a daemon that is stopped ends with %v", err)
		}
	}
}

// A receiver that is interrupted tells its sender, which would try on otherwise.
func TestHopReceiverInterrupted(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	write(t, large, "")
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Skip(err) // no holes in files here
	}
	in := filepath.Join(dir, "in")
	there := startHop(t, "hop", "receive", "--id", "7", "--listen", "127.0.0.1:0", "--dir", in, "--max-size", "2000GiB")
	sender := startHop(t, "hop", "send", large, there.address(), "--listen", "127.0.0.1:0")
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		parts, _ := os.ReadDir(in)
		for _, p := range parts {
			i, err := p.Info()
			begun = begun || err == nil && i.Size() > 0
		}
	}
	there.stop()
	if err := there.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("the receiver: %v", err)
	}
	if err := sender.wait(); err == nil || !strings.Contains(err.Error(), "given up by the other end") {
		t.Errorf("the sender: %v", err)
	}
}

// A transfer that stands still is not given up, but somebody is told.
func TestStallNote(t *testing.T) {
	said := make(chan string, 10)
	s := newStallNote("f", 10*time.Millisecond, func(text string) { said <- text })
	s.progress(0)
	s.progress(3000)
	if text := <-said; !strings.Contains(text, "f: nothing has gone on for 10ms, at ") {
		t.Error(text)
	}
	s.progress(4000)
	<-said
	s.end()
}

func TestHopUsage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad.yaml"), "idd: 7\n")
	for _, c := range []struct {
		args string
		want string
		code int
	}{
		{"hop send x", "wants FILE… HOST", exitUsage},
		{"hop send a b 127.0.0.1 --name c", "--name is for one FILE", exitUsage},
		{"hop receive --count -1", "--count -1", exitUsage},
		{"hop receive --dir - --count 2", "takes one file", exitUsage},
		{"hop daemon --id nobody", `node id "nobody"`, exitUsage},
		{"hop daemon --route 1-2", "want NODE=NEIGHBOUR", exitUsage},
		{"hop daemon --peer 0=host", "--peer 0=host", exitUsage},
		{"hop daemon --dir . --max-size big", "--max-size big", exitUsage},
		{"hop daemon --config bad.yaml", "idd", exitUsage},
		{"hop daemon extra", `"extra" is one`, exitUsage},
		{"hop daemon --listen 192.0.2.1:1", "192.0.2.1:1", exitError},
		{"hop send bad.yaml 127.0.0.1:1 --timeout 100ms", "no Hop node has answered at 127.0.0.1:1: nothing for 100ms; is hopbed hop receive", exitError},
		{"hop send bad.yaml missing 127.0.0.1:1 --timeout 1h", "missing: no such file", exitError}, // before it waits
		{"hop send . 127.0.0.1:1 --timeout 1h", "is a folder", exitError},
		{"hop receive --dir bad.yaml --listen 127.0.0.1:0", "--dir bad.yaml is no folder", exitError},
		{"hop receive --dir no/where --listen 127.0.0.1:0", "no/where", exitError},
		{"hop nothing", "there is no command", exitUsage},
	} {
		status, _, stderr := hopbed(t, dir, strings.Fields(c.args)...)
		if status != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", c.args, status, c.code, c.want, stderr)
		}
	}
	// The configuration in the help is one.
	_, help, _ := hopbed(t, dir, "hop", "daemon", "--help")
	_, text, _ := strings.Cut(help, "unknown keys are errors:\n")
	text, _, _ = strings.Cut(text, "radio: true marks")
	write(t, filepath.Join(dir, "help.yaml"), text)
	if f, err := readHopFile(filepath.Join(dir, "help.yaml")); err != nil || len(f.Peers) != 2 || !f.Peers[1].Radio || f.Routes["10.0.3.7"] != "7" {
		t.Errorf("%+v, %v in\n%s", f, err, text)
	}
	if status, stdout, _ := hopbed(t, dir, "hop", "--help"); status != exitOK || !strings.Contains(stdout, "hopbed hop send report.pdf") {
		t.Errorf("--help: status %d: %s", status, stdout)
	}
}

// Ctrl-C ends a transfer at once; what has come is kept for the next attempt.
func TestHopSendIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 8<<30); err != nil { // sparse
		t.Skip("no sparse files here:", err)
	}
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	there := startHop(t, "hop", "daemon", "--id", "7", "--listen", "127.0.0.1:0", "--dir", in)
	send := startHop(t, "hop", "send", big, there.address(), "--listen", "127.0.0.1:0")
	part := func() int64 {
		if m, _ := filepath.Glob(filepath.Join(in, ".hopbed-*.part")); len(m) == 1 {
			if i, err := os.Stat(m[0]); err == nil {
				return i.Size()
			}
		}
		return 0
	}
	for end := time.Now().Add(30 * time.Second); part() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing has come\n%s%s", send.said(), there.said())
		}
	}
	send.stop()
	if err := send.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	there.find(`big from node \S+: not received: (.+)`)
	if part() == 0 {
		t.Error("what has come was thrown away")
	}
	there.stop()
	there.wait()
}
