package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
)

func connect(t *testing.T, n *inventory.Node) (sshclient.Client, agents.Facts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := sshclient.New(sshclient.Options{Timeout: time.Minute}).Dial(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	f, err := agents.Examine(ctx, c, n)
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// large is an agent that takes a while to upload: this program, made longer.
func large(t *testing.T, size int64) *agents.Binary {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	out, err := agents.Open(path, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The connection breaks in the middle of an upload.
func TestUploadOverACutConnection(t *testing.T) {
	testenv.Need(t, testenv.Root)
	s := sshtest.Start(t, sshtest.Options{})
	n := s.Node("n01")
	n.Dir = filepath.Join(t.TempDir(), "agents")
	c, f := connect(t, n)
	b := large(t, 400<<20)
	done := make(chan error, 1)
	go func() {
		_, err := agents.Push(context.Background(), c, n, f, b)
		done <- err
	}()
	begun := func() bool {
		parts, err := filepath.Glob(filepath.Join(n.Dir, "*.part"))
		if err != nil || len(parts) == 0 {
			return false
		}
		st, err := os.Stat(parts[0])
		return err == nil && st.Size() > 0
	}
	for end := time.Now().Add(30 * time.Second); !begun(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the upload does not begin")
		}
	}
	c.Close()
	if err := <-done; err == nil {
		t.Fatal("half an upload was a whole one")
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left, err := os.ReadDir(n.Dir)
		if err == nil && len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left: %v, %v", left, err)
		}
	}
}

// The node's disk is full: the upload ends early, while the controller still sends.
func TestFullDiskOverSSH(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.Program("unshare"), testenv.Program("nsenter"), testenv.Program("mount"))
	dir := t.TempDir()
	hold := exec.Command("unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=300k,mode=0700 tmpfs "$1" && echo ready && exec sleep 600`, "sh", dir)
	out, err := hold.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hold.Process.Kill(); hold.Wait() })
	var ready string
	if _, err := fmt.Fscan(out, &ready); err != nil {
		t.Fatal(err)
	}
	s := sshtest.Start(t, sshtest.Options{Config: []string{fmt.Sprintf(`ForceCommand exec nsenter -t %d -m -- sh -c "$SSH_ORIGINAL_COMMAND"`, hold.Process.Pid)}})
	n := s.Node("n01")
	n.Dir = filepath.Join(dir, "agents")
	c, f := connect(t, n)
	_, err = agents.Push(context.Background(), c, n, f, large(t, 100<<20))
	var e *agents.Error
	if !errors.As(err, &e) || e.Kind != agents.KindDiskFull || !strings.Contains(err.Error(), "n01") || !strings.Contains(err.Error(), "101 MB") {
		t.Errorf("a full disk: %v", err)
	}
	left, _, err := c.Run(context.Background(), nil, "ls", "-A", n.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if c.Err() != nil {
		t.Errorf("the connection did not survive: %v", c.Err())
	}
}
