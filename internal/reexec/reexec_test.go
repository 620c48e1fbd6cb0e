package reexec

import (
	"os"
	"os/exec"
	"path/filepath"
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

// A copy on another host is started by its path.
func TestCopyPlaysItsPart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		marker string
		status int
	}{
		"hopbed-test-part":      {"hopbed-test-part", 7},
		"hopbed-test-part-0123": {"hopbed-test-part", 7},
		"hopbed-test-part-1":    {"", 0}, // an ordinary start
		"hopbed-test-particle":  {"hopbed-test-part", 0},
		"another":               {"hopbed-test-part", 0}, // what a part starts
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "-test.run=^$")
		cmd.Env = append(os.Environ(), Marker+"="+c.marker)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.status {
			t.Errorf("%s marked %q ended with %d (%s), want %d", name, c.marker, got, out, c.status)
		}
	}
}
