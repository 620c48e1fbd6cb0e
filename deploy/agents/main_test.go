package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/internal/reexec"
)

// TestMain: the test program is its own agent, as hopbed is.
func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{Part: func() int {
		if id := os.Getenv("TEST_IDENTITY"); id != "" {
			os.Stdout.WriteString(id + "\n")
			return 0
		}
		_, status := about.Main(os.Args[1:], os.Stdout, os.Stderr)
		return status
	}})
	os.Exit(m.Run())
}

// here is a "node" that is this host: programs run as a login shell would run them.
type here struct {
	env   []string
	shell []string // default sh
	wrap  []string // program that runs the shell
	// cut ends the input of a program after so many bytes, as a lost connection does.
	cut int64
}

func (h *here) command(argv []string) (*exec.Cmd, error) {
	line, err := sshclient.Quote(argv...)
	if err != nil {
		return nil, err
	}
	shell := h.shell
	if shell == nil {
		shell = []string{"sh"}
	}
	all := append(append(append([]string{}, h.wrap...), shell...), "-c", line)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Env = append(os.Environ(), h.env...)
	return cmd, nil
}

func (h *here) Run(_ context.Context, stdin io.Reader, argv ...string) (stdout, stderr []byte, err error) {
	cmd, err := h.command(argv)
	if err != nil {
		return nil, nil, err
	}
	if stdin != nil && h.cut > 0 {
		stdin = io.LimitReader(stdin, h.cut)
	}
	cmd.Stdin = stdin
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) || (err != nil && cmd.ProcessState != nil && !cmd.ProcessState.Success()) {
		err = &sshclient.ExitError{Program: argv[0], Status: cmd.ProcessState.ExitCode(), Stderr: errs.String()}
	}
	return out.Bytes(), errs.Bytes(), err
}

func (h *here) Start(context.Context, io.Writer, ...string) (sshclient.Process, error) {
	return nil, errors.New("nothing is started here")
}
func (h *here) Local() net.Addr       { return nil }
func (h *here) Remote() net.Addr      { return nil }
func (h *here) Done() <-chan struct{} { return nil }
func (h *here) Err() error            { return nil }
func (h *here) Close() error          { return nil }

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// kindOf returns the kind of an *Error, and complains about one without a remedy.
func kindOf(t *testing.T, err error) Kind {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	if e.What == "" || (e.Do == "" && e.Kind != KindArchitecture) {
		t.Errorf("an error without a remedy: %v", err)
	}
	return e.Kind
}
