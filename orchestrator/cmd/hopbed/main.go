// Command hopbed describes, runs and compares wireless transport experiments:
// one experiment file, run on emulated nodes in network namespaces, with every
// result kept in SQLite and a report that says how sure each number is.
//
// This package wires the command line to the drivers; it is the only place that
// knows all of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/reexec"
)

// The exit statuses.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotValid    = 3   // finished, but some run failed or is invalid
	exitInterrupted = 130 // stopped by the user; --resume goes on
)

// exit carries a status through the command-line library.
type exit struct {
	code int
	err  error // nil: everything was said already
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

func main() {
	reexec.Dispatch(parts())
	os.Exit(command(os.Args, os.Stdout, os.Stderr))
}

// command runs one command line and returns its exit status.
func command(args []string, stdout io.Writer, stderr *os.File) int {
	// SIGHUP (the terminal was closed) ends a campaign as politely as Ctrl-C.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, permute(app, args))
	if err == nil {
		return exitOK
	}
	var e *exit
	if errors.As(err, &e) {
		if e.err != nil {
			fmt.Fprintln(stderr, "hopbed:", clean2(e.err.Error()))
		}
		return e.code
	}
	fmt.Fprintln(stderr, "hopbed:", clean2(err.Error()))
	return exitError
}

// clean2 is clean for text of several lines.
func clean2(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

func newApp(stdout io.Writer, stderr *os.File) *cli.App {
	usage := func(_ *cli.Context, err error, _ bool) error { return &exit{exitUsage, err} }
	app := &cli.App{
		Name:                      "hopbed",
		Usage:                     "run and compare wireless transport experiments",
		Version:                   version(),
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           true,
		OnUsageError:              usage,
		ExitErrHandler:            func(*cli.Context, error) {},
		DisableSliceFlagSeparator: true, // a value of --set may contain commas
		Commands: []*cli.Command{
			listCommand(), checkCommand(), runCommand(stderr),
			reportCommand(), resultsCommand(), showCommand(), exportCommand(),
			topologyCommand(), benchCommand(), doctorCommand(), cleanCommand(stderr),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("there is no command %q: see hopbed --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = usage
		for _, s := range c.Subcommands {
			s.OnUsageError = usage
		}
	}
	return app
}

// version is what the results say about the program: the module's version, and
// the commit where it was built from a checkout.
func version() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := bi.Main.Version
	if v == "" {
		v = "(devel)"
	}
	var rev, dirty string
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	if rev != "" && !strings.Contains(v, rev) {
		v += " " + rev + dirty
	}
	return v
}
