package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

var long = []string{"duration: 1500ms", "duration: 60s", "repeat: 1", "repeat: 3"}

// Ctrl-C, a kill and a closed terminal end a campaign within 3 s, keep what is
// finished, and leave nothing behind.
func TestSignalsEndACampaignInOrder(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	for _, c := range []struct {
		signal syscall.Signal
		phase  string
	}{{syscall.SIGINT, "measure"}, {syscall.SIGTERM, "configure"}, {syscall.SIGHUP, "start 3 nodes"}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			dir := experiment(t, long...)
			p := start(t, dir, "run", "f.yaml")
			p.await(c.phase, 1)
			p.signal(c.signal)
			began := time.Now()
			if status := p.end(); status != exitInterrupted {
				t.Errorf("status %d, want %d:\n%s", status, exitInterrupted, p.said())
			}
			if d := time.Since(began); d > 3*time.Second {
				t.Errorf("it took %v", d)
			}
			if !strings.Contains(p.said(), "--resume") {
				t.Errorf("how to go on is not said:\n%s", p.said())
			}
			p.leavesNothing("f.yaml", "results.db")
			if runs, status := stored(t, dir); len(runs) != 0 || status != store.CampaignInterrupted {
				t.Errorf("%d runs, campaign %s", len(runs), status)
			}
		})
	}
}

// A second Ctrl-C ends hopbed at once, and the first one where it hangs in a
// file that nobody writes to.
func TestSignalsEndWhatDoesNotListen(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "f.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"check", "run"} {
		p := start(t, dir, name, "f.yaml")
		time.Sleep(300 * time.Millisecond) // until it opens the file; earlier is no failure either
		p.signal(syscall.SIGINT)
		began := time.Now()
		if status := p.end(); status != exitInterrupted && status != -1 || time.Since(began) > 3*time.Second {
			t.Errorf("%s: status %d after %v", name, status, time.Since(began))
		}
	}
}

// A controller that was killed with -9 costs the run in progress. The next one
// removes what is left and does exactly what is missing.
func TestKilledCampaignIsResumed(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, "duration: 1500ms", "duration: 400ms", "warmup: 500ms", "warmup: 100ms")
	p := start(t, dir, "run", "f.yaml")
	p.await("run 2/2", 1)
	p.signal(syscall.SIGKILL)
	p.end()
	before, status := stored(t, dir)
	if len(before) == 0 || status != store.CampaignKilled {
		t.Fatalf("%d runs, campaign %s after the kill in the second run:\n%s", len(before), status, p.said())
	}
	look := start(t, dir, "results")
	if code := look.end(); code != exitOK || !strings.Contains(look.stdout.String(), "killed") || strings.Contains(look.stdout.String(), "running") {
		t.Errorf("results: status %d; a campaign that nobody runs looks like this:\n%s", code, look.stdout.String())
	}
	again := start(t, dir, "run", "f.yaml", "--resume")
	if code := again.end(); code != exitOK && code != exitNotValid {
		t.Fatalf("resume: status %d:\n%s", code, again.said())
	}
	after, _ := stored(t, dir)
	added := after[len(before):]
	// A busy host may have spoilt the first run: then it is missing, too.
	if len(added) == 0 || valid(before) == 1 && added[0].Transport != "tcp/cubic" || added[0].CampaignID != before[0].CampaignID {
		t.Errorf("%d valid runs before, then %d were added:\n%s", valid(before), len(added), again.said())
	}
	again.leavesNothing("f.yaml", "results.db")
}

func valid(runs []store.Run) (n int) {
	for _, r := range runs {
		if r.Valid {
			n++
		}
	}
	return n
}

// Processes that die cost their run, which is repeated; the campaign goes on.
func TestDeadPartsCostOneAttempt(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, "duration: 1500ms", "duration: 400ms", "warmup: 500ms", "warmup: 100ms")
	p := start(t, dir, "run", "f.yaml")
	p.await("warm-up", 1)
	if err := syscall.Kill(p.part("hopbed-emulator"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await("warm-up", 2)
	if err := syscall.Kill(p.part("hopbed-agent"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK && code != exitNotValid {
		t.Errorf("status %d:\n%s", code, p.said())
	}
	runs, _ := stored(t, dir)
	if len(runs) < 4 || runs[0].Status != store.RunFailed || runs[1].Status != store.RunFailed || runs[2].Attempt != 3 {
		t.Fatalf("%d runs are stored:\n%s", len(runs), p.said())
	}
	for i, want := range []string{"the emulator", "the agent"} {
		if !strings.Contains(runs[i].Error, want) || !strings.Contains(runs[i].Error, "signal: killed") {
			t.Errorf("the reason of run %d: %s", i+1, runs[i].Error)
		}
	}
	p.leavesNothing("f.yaml", "results.db")
}

// A part that was stopped for a while spoils its run, and the reason names it.
// The controller may be stopped.
func TestStoppedPartsSpoilARun(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, "[hop, tcp/cubic]", "[hop]", "duration: 1500ms", "duration: 1s", "warmup: 500ms", "warmup: 100ms")
	p := start(t, dir, "run", "f.yaml")
	pause := func(pid int, d time.Duration) {
		t.Helper()
		time.Sleep(200 * time.Millisecond)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	p.await("  measure", 1)
	pause(p.part("hopbed-emulator"), 300*time.Millisecond)
	p.await("  measure", 2)
	pause(p.part("hopbed-agent"), 600*time.Millisecond)
	p.await("  measure", 3)
	pause(p.cmd.Process.Pid, time.Second)
	code := p.end()
	runs, _ := stored(t, dir)
	if len(runs) != 3 {
		t.Fatalf("%d runs:\n%s", len(runs), p.said())
	}
	for i, want := range []string{"the emulator stood still for", "the agent of node n"} {
		if runs[i].Valid || !strings.Contains(strings.Join(runs[i].InvalidReasons, "; "), want) {
			t.Errorf("run %d: valid %v, %v; want %q", i+1, runs[i].Valid, runs[i].InvalidReasons, want)
		}
	}
	// A busy host may spoil the third attempt too, but not by a standstill.
	if r := strings.Join(runs[2].InvalidReasons, "; "); code != exitOK && (code != exitNotValid || strings.Contains(r, "stood still")) {
		t.Errorf("status %d, the run with a stopped controller: %s", code, r)
	}
	p.leavesNothing("f.yaml", "results.db")
}

// Nobody reads the progress any more: the campaign ends as with a closed
// terminal. Nobody reads the results: the report is written all the same.
func TestClosedPipes(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, long...)
	p := start(t, dir, "run", "f.yaml")
	p.await("campaign 1", 1)
	p.stderr.Close()
	if code := p.end(); code != exitInterrupted {
		t.Errorf("progress into a closed pipe: status %d", code)
	}
	p.leavesNothing("f.yaml", "results.db")
	if _, status := stored(t, dir); status != store.CampaignInterrupted {
		t.Errorf("the campaign is %s", status)
	}

	dir = experiment(t, "[hop, tcp/cubic]", "[hop]", "1500ms", "300ms")
	q := prepare(t, dir, "run", "f.yaml", "--report", "r.md")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	q.cmd.Stdout = w
	q.launch()
	w.Close()
	if code := q.end(); code != exitError || !strings.Contains(q.said(), "broken pipe") {
		t.Errorf("results into a closed pipe: status %d:\n%s", code, q.said())
	}
	if st, err := os.Stat(filepath.Join(dir, "r.md")); err != nil || st.Size() == 0 {
		t.Errorf("the report: %v", err)
	}
	q.leavesNothing("f.yaml", "results.db", "r.md")
}

// A second hopbed beside the first is warned, leaves it alone, and is refused
// only on the same database.
func TestTwoAtOnce(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, long...)
	first := start(t, dir, "run", "f.yaml")
	first.await("  measure", 1)
	if p := start(t, dir, "run", "f.yaml"); p.end() != exitError || !strings.Contains(p.said(), "being written by") {
		t.Errorf("on the same database:\n%s", p.said())
	}
	p := start(t, dir, "run", "f.yaml", "--db", "b.db", "--repeat", "1", "--set", "duration=300ms", "--set", "matrix.transport=[hop]")
	if code := p.end(); code != exitOK && code != exitNotValid || !strings.Contains(p.said(), "another hopbed is at work (pid ") {
		t.Errorf("on another database: status %d:\n%s", code, p.said())
	}
	if p := start(t, dir, "clean"); p.end() != exitOK || !strings.Contains(p.stdout.String(), "left alone") {
		t.Errorf("clean:\n%s", p.stdout.String())
	}
	select {
	case <-first.read:
		t.Errorf("the first was disturbed:\n%s", first.said())
	default:
	}
	first.signal(syscall.SIGINT)
	if code := first.end(); code != exitInterrupted {
		t.Errorf("the first ends with the status %d:\n%s", code, first.said())
	}
	first.leavesNothing("f.yaml", "results.db", "b.db")
}
