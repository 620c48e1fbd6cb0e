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
	"github.com/hopbed/hopbed/orchestrator/store"
)

// cliPart is hopbed as a program of its own, for tests that send it signals.
const cliPart = "hopbed-test-cli"

func testParts() reexec.Table {
	return reexec.Table{cliPart: wholeProgram, bareHostPart: bareHost, holderPart: hold}
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
	case <-time.After(4 * time.Minute): // in the kernel lane processors are emulated
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
	st := reading(t, filepath.Join(dir, "results.db"))
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil {
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
