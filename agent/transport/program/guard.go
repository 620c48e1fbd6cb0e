//go:build linux

package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/reexec"
)

// GuardPart is the name (argv[0]) under which the agent's program is the parent
// of a program in a process namespace of its own.
const GuardPart = "hopbed-guard"

// Guard is the part's main function: it runs the program that its arguments name
// (path, then argv), and ends with its status. It is process 1 of the namespace,
// so that the kernel ends whatever is left in it. The requests to end come to
// the whole group; the guard outlives them.
func Guard() int {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, GuardPart+": no program is named")
		return 2
	}
	runtime.LockOSThread() // the program ends with the thread that started it
	// Caught, not ignored: what is ignored would be so in the program, too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	cmd := &exec.Cmd{Path: os.Args[1], Args: os.Args[2:], Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, reexec.Marker+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	if w, _ := exit.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}
