package sshd

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
)

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		config []string
		want   string
	}{
		{nil, `SetEnv "HOME=/d" "SHLVL=1"`},
		{[]string{"MaxSessions 3", "setenv A=b C=d"}, `SetEnv A=b C=d "HOME=/d" "SHLVL=1"|MaxSessions 3`},
		{[]string{`SetEnv "HOME=/x y"`, "SetEnv A=b"}, `SetEnv "HOME=/x y" A=b "SHLVL=1"`},
	} {
		if got := strings.Join(environment(Options{Dir: "/d", Config: c.config}), "|"); got != c.want {
			t.Errorf("%q: %s, want %s", c.config, got, c.want)
		}
	}
}

func TestStartAndStop(t *testing.T) {
	testenv.Need(t, testenv.SSHServer(Available))
	s, err := Start(t.Context(), Options{Dir: t.TempDir(), HostKeys: []string{"ed25519", "ecdsa"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.HostKeys) != 2 || s.Addr.Port() == 0 {
		t.Errorf("%+v", s)
	}
	if !slices.Contains(s.Processes(), s.PID()) {
		t.Errorf("process %d is not among %v", s.PID(), s.Processes())
	}
	s.Stop()
	s.Stop()
	select {
	case <-s.Done():
	case <-time.After(30 * time.Second):
		t.Error("not done after Stop")
	}
}

// A server that does not start says why, with its own words.
func TestStartFails(t *testing.T) {
	testenv.Need(t, testenv.SSHServer(Available))
	_, err := Start(t.Context(), Options{Dir: t.TempDir(), Config: []string{"NoSuchKeyword yes"}})
	if err == nil || !strings.Contains(err.Error(), "NoSuchKeyword") {
		t.Errorf("%v", err)
	}
	_, err = Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "none")})
	if err == nil {
		t.Error("started without a folder")
	}
	_, err = Start(t.Context(), Options{Dir: t.TempDir(), NetNS: filepath.Join(t.TempDir(), "ns")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "network namespace") {
		t.Errorf("%v", err)
	}
}
