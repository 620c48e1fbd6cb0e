//go:build linux

package session

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/agent/route"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/reexec"
)

// Part is the name (argv[0]) under which a controller re-executes itself as
// the agent, and a guardian its worker.
const Part = "hopbed-agent"

const usage = `usage: hopbed-agent              orders on standard input (agent/proto); for a namespace of its own
       hopbed-agent --guarded    the same for a machine: a parent process puts its settings back, whatever ends the agent
       hopbed-agent --clean      put back what killed agents have left, and say what
       hopbed-agent --version
       hopbed-agent --sha256     of this program
--guarded and --clean take --journal DIR: where the record of changes is (/run/hopbed)
`

// Main is the agent's program with the arguments of the process; see Command.
func Main(version string) int { return Command(os.Args[1:], version) }

// Command is the agent's program: it speaks the protocol on standard input and
// output until the controller says bye, vanishes or falls silent. version is the
// program's. With --guarded this process is the guardian, and its child, started
// again under the name Part, the agent. It returns the exit status: 0 after an
// ordered end, 1 otherwise, 2 where the arguments are not understood.
func Command(args []string, version string) int {
	if handled, status := about.Main(args, os.Stdout, os.Stderr); handled {
		return status
	}
	if err := widenPath(); err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	dir := undo.DefaultDir()
	if len(args) == 3 && args[1] == journalArg {
		dir, args = args[2], args[:1]
	}
	switch {
	case len(args) == 0:
		return work(version, nil)
	case len(args) == 1 && args[0] == guardedArg:
		g := undo.Guardian{Table: undoers(new(route.Caps)), Dir: dir, Log: os.Stderr, Name: "hopbed-guardian"}
		return g.Run(func(journal string) *exec.Cmd { return reexec.Command(Part, []string{workerArg, journal}) })
	case len(args) == 1 && args[0] == cleanArg:
		return clean(dir)
	case len(args) == 2 && args[0] == workerArg:
		w, err := undo.NewWorker(args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
			return 2
		}
		return work(version, w)
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

const (
	guardedArg = "--guarded"
	cleanArg   = "--clean"
	journalArg = "--journal"
	workerArg  = "--worker" // the guardian's, with the journal's path
)

// clean carries out the journals of dead agents.
func clean(dir string) int {
	found, err := undo.Replay(context.Background(), dir, undoers(new(route.Caps)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	status := 0
	for _, r := range found {
		for _, line := range r.Lines() {
			fmt.Println(line)
		}
		if r.Left() {
			status = 1
		}
	}
	if len(found) == 0 {
		fmt.Println("nothing is left of killed agents")
	}
	return status
}

func work(version string, guarded *undo.Worker) int {
	// An agent has little to compute, and there may be hundreds on one host:
	// a thread per processor for each would only cost memory and switches.
	if runtime.GOMAXPROCS(0) > 2 {
		runtime.GOMAXPROCS(2)
	}
	raisePriority()
	table, err := Transports()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	// The controller ends its agents; a Ctrl-C at its terminal must not kill
	// them before they have put back what they changed. A closed standard
	// output must not either.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	ctx, cancel := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer cancel()
	err = Run(ctx, os.Stdin, os.Stdout, Options{Version: version, Transports: table, Guarded: guarded, GiveUp: func(why string) {
		// Standard error may be as blocked as standard output.
		go fmt.Fprintf(os.Stderr, "hopbed-agent: %s: giving up\n", why)
		time.Sleep(patience / 5)
		os.Exit(1)
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "hopbed-agent:", err)
		return 1
	}
	return 0
}
