//go:build linux

// Command hopbed-agent makes the host or namespace that it runs in into a node
// of an experiment. It takes its orders on standard input and answers on
// standard output (package agent/proto), opens no port for them, and puts back
// what it changed when its input ends. With --guarded a parent process does so
// when it is killed. It is a static program without configuration: the
// controller copies it to real nodes.
package main

import (
	"os"
	"runtime/debug"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/internal/reexec"
)

func main() {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	run := func() int { return session.Main(version) }
	reexec.Dispatch(reexec.Table{session.Part: run, program.GuardPart: program.Guard})
	os.Exit(run())
}
