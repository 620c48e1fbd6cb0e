package lane_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/lane"
	"github.com/hopbed/hopbed/deploy/lane/lanetest"
	"github.com/hopbed/hopbed/internal/testenv"
)

// TestLane runs cases inside, with the modules of emulated links.
func TestLane(t *testing.T) {
	lanetest.Run(t, lane.Config{Modules: append([]string{"mac80211_hwsim radios=3"}, lane.Network...)},
		lanetest.Case{Name: "first process and root", Run: func(t *testing.T) {
			if os.Geteuid() != 0 || os.Getppid() != 1 {
				t.Errorf("uid %d, parent %d: want root, started by the first process", os.Geteuid(), os.Getppid())
			}
		}},
		lanetest.Case{Name: "modules with parameters", Run: func(t *testing.T) {
			b, err := os.ReadFile("/proc/modules")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{"sch_netem", "mac80211_hwsim", "cfg80211", "ifb"} {
				if !bytes.Contains(b, []byte(m+" ")) {
					t.Errorf("the module %s is not loaded", m)
				}
			}
			phys, _ := filepath.Glob("/sys/class/ieee80211/*")
			if len(phys) != 3 {
				t.Errorf("%d radios, want the 3 of the module's parameter: %q", len(phys), phys)
			}
		}},
		lanetest.Case{Name: "skip with a reason", Run: func(t *testing.T) {
			testenv.Need(t, testenv.Program("no-such-program"))
			t.Error("went on without the program")
		}},
	)
}

// needLane skips the test where there can be no lane.
func needLane(t *testing.T) {
	t.Helper()
	testenv.Long(t)
	testenv.Need(t, testenv.Program("qemu-system-x86_64"), testenv.Program("go"))
	var lack *lane.Unavailable
	if _, err := lane.Fetch(t.Context()); errors.As(err, &lack) {
		testenv.Need(t, testenv.Because(lack.What, err))
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestHostRoot(t *testing.T) {
	needLane(t)
	share := t.TempDir()
	if err := os.WriteFile(filepath.Join(share, "in"), []byte("from the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(share, "left-behind")
	var out bytes.Buffer
	// The words are the script's: nothing between host and guest interprets them.
	script := `echo "$1"; cat /share/in > /share/out; echo x > "$2" || exit 9; exit 42`
	status, err := lane.Run(t.Context(), lane.Config{HostRoot: true, Share: share, Stdout: &out, Timeout: time.Minute},
		"/bin/sh", "-c", script, "sh", `two  words; $(reboot) "'`, mark)
	if err != nil {
		t.Fatal(err)
	}
	if status != 42 {
		t.Errorf("status %d, want the program's 42: %s", status, &out)
	}
	if want := "two  words; $(reboot) \"'\n"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
	if b, err := os.ReadFile(filepath.Join(share, "out")); err != nil || string(b) != "from the host" {
		t.Errorf("the shared folder has %q, %v", b, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("what the guest wrote to the host's tree reached the host")
	}
}

func TestDeaths(t *testing.T) {
	needLane(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	var died *lane.Died
	_, err = lane.Run(t.Context(), lane.Config{HostRoot: true, Timeout: 8 * time.Second}, sleep, "100")
	if !errors.As(err, &died) || !strings.Contains(died.Cause, "did not end within 8s") {
		t.Errorf("a program that does not end: %v", err)
	}
	_, err = lane.Run(t.Context(), lane.Config{Memory: 16, Timeout: time.Minute}, sleep)
	if !errors.As(err, &died) {
		t.Errorf("a machine too small for its kernel: %v", err)
	}
	var lack *lane.Unavailable
	_, err = lane.Run(t.Context(), lane.Config{Modules: []string{"no_such_module"}}, sleep)
	if !errors.As(err, &lack) || !strings.Contains(err.Error(), "no_such_module") {
		t.Errorf("a module that the kernel does not have: %v", err)
	}
}

func TestWhatTheHostLacks(t *testing.T) {
	var lack *lane.Unavailable
	t.Setenv(lane.CacheVar, t.TempDir())
	t.Setenv("PATH", t.TempDir())
	if _, err := lane.Run(t.Context(), lane.Config{}, "/bin/true"); !errors.As(err, &lack) || !strings.Contains(err.Error(), "qemu-system-x86") {
		t.Errorf("without QEMU: %v", err)
	}
	if _, err := lane.Fetch(context.Background()); !errors.As(err, &lack) || !strings.Contains(err.Error(), "apt") {
		t.Errorf("without apt: %v", err)
	}
	t.Setenv(lane.KernelVar, "/nonexistent")
	if _, err := lane.Fetch(context.Background()); !errors.As(err, &lack) || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("a folder without a kernel: %v", err)
	}
}
