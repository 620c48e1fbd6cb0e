package radio

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Host is where a driver works: what it runs and reads.
type Host interface {
	// Look tells whether a program is there.
	Look(program string) error
	// Run runs a command, with input on its standard input, and returns what it
	// wrote. Where it ended with another status than 0 the error is a *Failed.
	Run(ctx context.Context, argv []string, input string) (string, error)
	// ReadFile reads a file of /proc or /sys.
	ReadFile(path string) ([]byte, error)
	// Interface returns the state of a network interface; fs.ErrNotExist.
	Interface(name string) (Interface, error)
	// Wireless asks the kernel's nl80211 about an interface.
	Wireless(name string) (*Wireless, error)
}

// Interface is the state of a network interface.
type Interface struct {
	Up        bool
	Addresses []netip.Prefix // IPv4
}

// Failed is a command that ended with another status than 0.
type Failed struct {
	Argv   []string
	Status string // "exit status 1"
	Output string // of both streams, the end of it
}

// Error names the command, its status and its words.
func (e *Failed) Error() string {
	s := fmt.Sprintf("%s: %s", Step{Argv: e.Argv}, e.Status)
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

// commandTime bounds one command: drivers answer at once, hostapd and scans of
// iw within seconds.
const commandTime = 15 * time.Second

// outputLimit is the most that is kept of what a command writes.
const outputLimit = 64 << 10

// system is this host.
type system struct{}

// System returns the host that this process runs on, in the network namespace of
// the calling thread.
func System() Host { return system{} }

func (system) Look(program string) error {
	_, err := exec.LookPath(program)
	return err
}

func (system) Run(ctx context.Context, argv []string, input string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.Stdin = strings.NewReader(input)
	c.WaitDelay = time.Second // a daemon may keep the pipe
	out, err := c.CombinedOutput()
	if len(out) > outputLimit {
		out = out[len(out)-outputLimit:]
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if ctx.Err() != nil {
		return string(out), fmt.Errorf("%s: not done after %v: %w", Step{Argv: argv}, commandTime, ctx.Err())
	}
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), &Failed{Argv: argv, Status: ee.Error(), Output: strings.Join(strings.Fields(string(out)), " ")}
	}
	if err != nil {
		return string(out), fmt.Errorf("%s: %w", Step{Argv: argv}, err)
	}
	return string(out), nil
}

func (system) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
