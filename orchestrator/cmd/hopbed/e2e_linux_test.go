package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// cliPart is hopbed as a program of its own, for tests that send it signals.
const cliPart = "hopbed-test-cli"

func testParts() reexec.Table {
	return reexec.Table{cliPart: wholeProgram, bareHostPart: bareHost}
}

func wholeProgram() int {
	return command(append([]string{"hopbed"}, os.Args[1:]...), os.Stdout, os.Stderr)
}

// program is a running hopbed in a folder of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	stdout bytes.Buffer
	mu     sync.Mutex
	lines  []string // of standard error
	fresh  chan struct{}
	read   chan struct{} // closed at the end of standard error
	stderr *os.File
}

func prepare(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	p := &program{t: t, dir: dir, fresh: make(chan struct{}, 1), read: make(chan struct{})}
	p.cmd = reexec.Command(cliPart, args, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	p.cmd.Dir = dir
	p.cmd.Stdout = &p.stdout
	p.cmd.WaitDelay = 5 * time.Second
	return p
}

// start runs the program and reads its standard error.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	p := prepare(t, dir, args...)
	p.launch()
	return p
}

func (p *program) launch() {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stderr, p.cmd.Stderr = r, w
	err = p.cmd.Start()
	w.Close()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		for _, m := range p.family() {
			_ = syscall.Kill(m.pid, syscall.SIGKILL)
		}
	})
	go func() {
		defer close(p.read)
		for in := bufio.NewScanner(r); in.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, in.Text())
			p.mu.Unlock()
			select {
			case p.fresh <- struct{}{}:
			default:
			}
		}
	}()
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// await waits until the program has said something n times.
func (p *program) await(text string, n int) {
	p.t.Helper()
	limit := time.After(30 * time.Second)
	for strings.Count(p.said(), text) < n {
		select {
		case <-p.fresh:
		case <-p.read:
			if strings.Count(p.said(), text) < n {
				p.t.Fatalf("it ended before it said %q %d times:\n%s", text, n, p.said())
			}
		case <-limit:
			p.t.Fatalf("it did not say %q %d times:\n%s", text, n, p.said())
		}
	}
}

// end waits for the program's end and returns its exit status, -1 after a
// signal.
func (p *program) end() int {
	p.t.Helper()
	done := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(done) }() // the status says it
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
		p.t.Fatalf("it does not end:\n%s", p.said())
	}
	select {
	case <-p.read:
	case <-time.After(5 * time.Second): // somebody holds the pipe
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

type member struct {
	pid  int
	part string
}

// family lists the processes that belong to the program's folder.
func (p *program) family() []member {
	pids, err := procfs.PIDs()
	if err != nil {
		p.t.Fatal(err)
	}
	var all []member
	for _, pid := range pids {
		if ours, _ := procfs.HasEnv(pid, "XDG_STATE_HOME="+filepath.Join(p.dir, "state")); ours && procfs.Running(pid) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			part, _, _ := bytes.Cut(b, []byte{0})
			all = append(all, member{pid, string(part)})
		}
	}
	return all
}

func (p *program) part(name string) int {
	p.t.Helper()
	for _, m := range p.family() {
		if m.part == name {
			return m.pid
		}
	}
	p.t.Fatalf("no %s among %v", name, p.family())
	return 0
}

// leavesNothing fails if a process, a journal or an unexpected file is left.
func (p *program) leavesNothing(files ...string) {
	p.t.Helper()
	for i := 0; len(p.family()) > 0 && i < 100; i++ { // a killed process takes a moment
		time.Sleep(10 * time.Millisecond)
	}
	if left := p.family(); len(left) > 0 {
		p.t.Errorf("processes are left: %v", left)
	}
	if j, _ := filepath.Glob(filepath.Join(p.dir, "state", "hopbed", "journal", "*")); len(j) > 0 {
		p.t.Errorf("journals are left: %v", j)
	}
	for _, f := range list(p.t, p.dir) {
		if f != "state" && !slices.Contains(files, f) {
			p.t.Errorf("%s is left", f)
		}
	}
}

// stored reads the runs of the folder's database, with all that belongs to
// them, and the newest campaign's status.
func stored(t *testing.T, dir string) (runs []store.Run, status store.CampaignStatus) {
	t.Helper()
	st, err := store.OpenRead(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if runs, err = st.Runs(t.Context(), store.Filter{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		flows, err := st.Flows(t.Context(), store.Filter{RunIDs: []int64{r.ID}})
		if err != nil || len(flows) != 1 {
			t.Errorf("run %d has %d flows: %v", r.ID, len(flows), err)
		}
		n := 0
		if err := st.Samples(t.Context(), r.ID, func(*store.Sample) error { n++; return nil }); err != nil || r.Valid && n == 0 {
			t.Errorf("run %d has %d samples: %v", r.ID, n, err)
		}
	}
	all, err := st.Campaigns(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatalf("campaigns: %v, %v", all, err)
	}
	return runs, all[len(all)-1].Status
}

func experiment(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	text := strings.NewReplacer(changes...).Replace(tiny)
	write(t, filepath.Join(dir, "f.yaml"), text)
	return dir
}

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
