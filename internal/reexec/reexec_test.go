package reexec

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Dispatch(Table{
		"hopbed-test-part": func() int { os.Stdout.WriteString(strings.Join(os.Args[1:], ",")); return 7 },
	})
	os.Exit(m.Run())
}

func TestPartRunsUnderItsName(t *testing.T) {
	cmd := Command("hopbed-test-part", []string{"a", "b"})
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 7 || string(out) != "a,b" {
		t.Fatalf("got %q, %v; want a,b and exit status 7", out, err)
	}
}

// A missing table entry must not start a second controller (or test run).
func TestUnknownPartIsRefused(t *testing.T) {
	cmd := Command("hopbed-nonexistent", nil)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "hopbed-nonexistent") {
		t.Fatalf("got %q, %v; want a refusal that names the part", out, err)
	}
}
