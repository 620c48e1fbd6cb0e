package testenv

import (
	"fmt"
	"sync"
	"testing"
)

// Requirement is something that a host may lack.
type Requirement struct {
	name  string
	probe func() error
}

// Name is the typed reason that a skip shows.
func (r Requirement) Name() string { return r.name }

var (
	mu    sync.Mutex
	cache = map[string]error{}
)

// Check returns nil if the host has what the requirement asks for, otherwise
// why not. Probes run once per process.
func Check(r Requirement) error {
	mu.Lock()
	defer mu.Unlock()
	err, ok := cache[r.name]
	if !ok {
		err = r.probe()
		cache[r.name] = err
	}
	return err
}

// Need skips the test unless the host has everything that it asks for. The
// first lack is the reason.
func Need(t testing.TB, rs ...Requirement) {
	t.Helper()
	for _, r := range rs {
		if err := Check(r); err != nil {
			t.Skipf("SKIP[unavailable: %s] %v", r.name, err)
		}
	}
}

// Long skips the test under -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIP[short] takes long; run without -short")
	}
}

// Program requires an executable in PATH.
func Program(name string) Requirement {
	return Requirement{name: "program " + name, probe: func() error { return lookPath(name) }}
}

// CC requires a TCP congestion control that a socket of this process can
// select.
func CC(name string) Requirement {
	return Requirement{name: "congestion control " + name, probe: func() error { return probeCC(name) }}
}

// What a host may lack.
var (
	Root  = Requirement{"root", probeRoot}             // effective uid 0 with CAP_NET_ADMIN and CAP_SYS_ADMIN
	NetNS = Requirement{"network namespaces", probeNS} // a new network namespace can be made
	TAP   = Requirement{"TAP devices", probeTAP}       // a TAP can be made inside a new network namespace
	// UserNS: an unprivileged process can make a user and a network namespace
	// and is root inside.
	UserNS = Requirement{"user namespaces", probeUserNS}
	FIFO   = Requirement{"SCHED_FIFO", probeFIFO}     // real-time priority is permitted
	PWait2 = Requirement{"epoll_pwait2", probePWait2} // Linux 5.11
)

func lack(format string, args ...any) error { return fmt.Errorf(format, args...) }
