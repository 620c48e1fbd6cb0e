package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestOwnProcess(t *testing.T) {
	pid := os.Getpid()
	pids, err := PIDs()
	if err != nil || !slices.Contains(pids, pid) {
		t.Errorf("own pid %d is not in %v (%v)", pid, pids, err)
	}
	if !Running(pid) {
		t.Error("this process does not run")
	}
	a, err1 := StartTime(pid)
	b, err2 := StartTime(pid)
	if err1 != nil || err2 != nil || a != b || a == 0 {
		t.Errorf("start times %d and %d (%v, %v)", a, b, err1, err2)
	}
	if ns, err := NetNS(pid); err != nil || len(ns) < len("net:[0]") {
		t.Errorf("namespace %q, %v", ns, err)
	}
	if id, err := BootID(); err != nil || len(id) != 36 {
		t.Errorf("boot id %q, %v", id, err)
	}
}

// A command name may contain whatever breaks a careless parser.
func TestStrangeNames(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a) R 1 (b")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: path, Args: []string{"sleep", "3600"}, Env: []string{"A=1", "HOPBED_TAG=x"}}
	before, err := StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	for end := time.Now().Add(5 * time.Second); Name(pid) != "a) R 1 (b" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := Name(pid); n != "a) R 1 (b" {
		t.Fatalf("name %q", n)
	}
	if s, err := StartTime(pid); err != nil || s < before || s > before+100*600 {
		t.Errorf("start time %d, ours %d (%v)", s, before, err)
	}
	for env, want := range map[string]bool{"A=1": true, "HOPBED_TAG=x": true, "HOPBED_TAG=": false, "HOPBED_TAG=xy": false, "OPBED_TAG=x": false} {
		if got, err := HasEnv(pid, env); err != nil || got != want {
			t.Errorf("HasEnv(%q) = %v, %v", env, got, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Killed, but nobody has waited for it: a zombie exists and does not run.
	for end := time.Now().Add(5 * time.Second); Running(pid) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if _, err := StartTime(pid); err != nil || Running(pid) {
		t.Errorf("the zombie: running %v, %v", Running(pid), err)
	}
	_ = cmd.Wait()
	if _, err := StartTime(pid); err == nil || Name(pid) != "?" {
		t.Errorf("a process that is gone is called %q (%v)", Name(pid), err)
	}
}
