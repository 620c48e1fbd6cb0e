//go:build linux

package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
)

func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{guardianPart: guardianMain, workerPart: workerMain})
	os.Exit(m.Run())
}

const (
	guardianPart = "hopbed-test-guardian"
	workerPart   = "hopbed-test-worker"
)

// files undoes "file" by removing it.
var files = Table{"file": On(func(_ context.Context, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
})}

// guardianMain guards a worker; its arguments are the journals' directory, the
// directory of the files, and how the worker ends.
func guardianMain() int {
	g := Guardian{Table: files, Dir: os.Args[1], Log: os.Stderr, Name: "guardian"}
	return g.Run(func(journal string) *exec.Cmd {
		return reexec.Command(workerPart, []string{journal, os.Args[2], os.Args[3]})
	})
}

// workerMain makes ten files, each recorded before, and ends in the given way.
func workerMain() int {
	w, err := NewWorker(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s := NewStack(files, func(err error) { fmt.Fprintln(os.Stderr, "worker:", err) }, w.Keepers()...)
	for i := range 10 {
		path := filepath.Join(os.Args[2], strconv.Itoa(i))
		if err := s.Push(New("file", "file "+strconv.Itoa(i), path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return 4
		}
	}
	fmt.Println("made", os.Getpid())
	switch os.Args[3] {
	case "well":
		s.Revert(context.Background())
		return 0
	case "badly":
		return 7
	case "panic":
		panic("on purpose")
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	<-w.Lost()
	_, failed := s.Revert(context.Background())
	if err := w.Finish(s.Len()); err != nil || len(failed) > 0 {
		fmt.Fprintln(os.Stderr, err, failed)
		return 5
	}
	return 6
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestGuardianPutsBack(t *testing.T) {
	for end, want := range map[string]struct {
		status int
		says   string
	}{
		"well":  {0, ""},
		"badly": {7, "the agent ended (exit status 7) with 10 settings changed"},
		"panic": {2, "put back: file 9, file 8"},
		"kill":  {1, "the agent ended (signal: killed) with 10 settings changed"},
	} {
		dir, made := filepath.Join(t.TempDir(), "undo"), t.TempDir()
		cmd := reexec.Command(guardianPart, []string{dir, made, end})
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if !strings.HasPrefix(string(out), "made") || cmd.ProcessState.ExitCode() != want.status {
			t.Errorf("%s: %q, %v, want the status %d", end, out, err, want.status)
		}
		if !strings.Contains(said.String(), want.says) || end == "well" && said.Len() > 0 {
			t.Errorf("%s: it said %q, want %q", end, &said, want.says)
		}
		if l := append(left(t, made), left(t, dir)...); len(l) > 0 {
			t.Errorf("%s: left %v", end, l)
		}
	}
}

// start starts a guarded worker that waits, and returns both and what they say.
func startGuarded(t *testing.T, dir, made string) (cmd *exec.Cmd, worker int, said *bytes.Buffer) {
	t.Helper()
	cmd = reexec.Command(guardianPart, []string{dir, made, "wait"})
	said = new(bytes.Buffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(out, "made %d\n", &worker); err != nil {
		t.Fatal(err)
	}
	return cmd, worker, said
}

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for begin := time.Now(); procfs.Running(pid); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func TestWorkerPutsBackWhenTheGuardianIsKilled(t *testing.T) {
	dir, made := filepath.Join(t.TempDir(), "undo"), t.TempDir()
	cmd, worker, said := startGuarded(t, dir, made)
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	awaitEnd(t, worker)
	_ = cmd.Wait()
	if l := append(left(t, made), left(t, dir)...); len(l) > 0 {
		t.Errorf("left %v; it said %q", l, said)
	}
}

func TestNextGuardianCarriesTheJournalOut(t *testing.T) {
	dir, made := filepath.Join(t.TempDir(), "undo"), t.TempDir()
	cmd, worker, _ := startGuarded(t, dir, made)
	kill(t, cmd.Process.Pid, syscall.SIGSTOP)
	kill(t, worker, syscall.SIGKILL)
	awaitEnd(t, worker)
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	if len(left(t, made)) != 10 || len(left(t, dir)) != 1 {
		t.Fatalf("left %v %v: the test shows nothing", left(t, made), left(t, dir))
	}
	other := t.TempDir()
	next := reexec.Command(guardianPart, []string{dir, other, "well"})
	said, err := next.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "were put back: file 9, file 8") {
		t.Errorf("%v, %q", err, said)
	}
	if l := append(left(t, made), left(t, dir)...); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

// Who waits for the end of the worker's output does not wait for the guardian,
// and nobody has to read what the guardian says.
func TestGuardianWaitsForNobody(t *testing.T) {
	dir, made := filepath.Join(t.TempDir(), "undo"), t.TempDir()
	cmd := reexec.Command(guardianPart, []string{dir, made, "kill"})
	unread, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	if err := stderr.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the pipe is full
		_, err = stderr.Write(make([]byte, 4096))
	}
	_ = stderr.SetWriteDeadline(time.Time{})
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("the guardian waits for a reader")
	}
	if l := append(left(t, made), left(t, dir)...); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

// Without a journal the guardian still does its part, and says what is missing.
func TestGuardianWithoutAJournal(t *testing.T) {
	dir, made := filepath.Join(t.TempDir(), "undo"), t.TempDir()
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := reexec.Command(guardianPart, []string{dir, made, "kill"})
	said, _ := cmd.CombinedOutput()
	if !strings.Contains(string(said), "if agent and guardian are killed at once") || !strings.Contains(string(said), "put back: file 9") {
		t.Errorf("it said %q", said)
	}
	if l := left(t, made); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

func TestWorkerArgumentIsTheGuardians(t *testing.T) {
	cmd := reexec.Command(workerPart, []string{"", t.TempDir(), "well"})
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "no socket to a guardian") {
		t.Errorf("%v, %q", err, out)
	}
}
