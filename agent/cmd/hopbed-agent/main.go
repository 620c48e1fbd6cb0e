//go:build linux

// Command hopbed-agent makes the host or namespace that it runs in into a node
// of an experiment. It takes its orders on standard input and answers on
// standard output (package agent/proto), opens no port for them, and puts back
// what it changed when its input ends. It is a static program without
// configuration: the controller copies it to real nodes.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/internal/reexec"
)

func main() {
	reexec.Dispatch(reexec.Table{program.GuardPart: program.Guard})
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	if len(os.Args) > 1 {
		if len(os.Args) == 2 && os.Args[1] == "--version" {
			fmt.Printf("hopbed-agent %s, protocol %d\n", version, proto.Version)
			return
		}
		fmt.Fprintln(os.Stderr, "usage: hopbed-agent            (orders on standard input, see agent/proto)\n       hopbed-agent --version")
		os.Exit(2)
	}
	os.Exit(session.Main(version))
}
