//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/testenv"
)

func build(t *testing.T, arch string) string {
	t.Helper()
	testenv.Need(t, testenv.Program("go"))
	out := filepath.Join(t.TempDir(), "hopbed-agent")
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if arch != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+arch)
	}
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build for %s: %v\n%s", arch, err, b)
	}
	return out
}

type pipes struct {
	io.Reader
	io.WriteCloser
}

// The program as it is copied to a router: it greets, refuses arguments, and
// ends with its input.
func TestProgram(t *testing.T) {
	bin := build(t, "")
	if b, err := exec.Command(bin, "--version").Output(); err != nil || !strings.Contains(string(b), fmt.Sprintf("protocol %d", proto.Version)) {
		t.Errorf("--version: %q, %v", b, err)
	}
	var usage bytes.Buffer
	bad := exec.Command(bin, "serve")
	bad.Stderr = &usage
	if err := bad.Run(); err == nil || bad.ProcessState.ExitCode() != 2 || !strings.Contains(usage.String(), "usage") {
		t.Errorf("an unknown argument: %v, %q", err, usage.String())
	}

	converse(t, exec.Command(bin))
	// On a machine: the guardian starts the same file as its worker.
	dir := filepath.Join(t.TempDir(), "undo")
	converse(t, exec.Command(bin, "--guarded", "--journal", dir))
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("journals %v, %v", list, err)
	}
	if b, err := exec.Command(bin, "--clean", "--journal", dir).Output(); err != nil || !strings.Contains(string(b), "nothing is left") {
		t.Errorf("--clean: %q, %v", b, err)
	}
}

// converse greets an agent and ends its input.
func converse(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := proto.NewClient(pipes{out, in})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h, err := c.Hello(ctx, proto.Hello{Controller: "test"})
	if err != nil || (len(cmd.Args) == 1) != (h.PID == cmd.Process.Pid) || h.Kernel == "" || len(h.CongestionControls) == 0 || h.MonotonicNS <= 0 || h.CPUs < 1 {
		t.Errorf("hello: %+v, %v", h, err)
	}
	in.Close()
	<-c.Done()
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the end of its input: %v", err)
	}
}

// Mesh routers have other processors.
func TestCrossCompiles(t *testing.T) {
	testenv.Long(t)
	for _, arch := range []string{"amd64", "arm64", "arm", "mipsle", "riscv64"} {
		t.Run(arch, func(t *testing.T) {
			st, err := os.Stat(build(t, arch))
			if err != nil || st.Size() > 16<<20 {
				t.Errorf("%v, %v: an agent for a router has to be small", st, err)
			}
		})
	}
}
