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
	"runtime/debug"
	"strings"

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
	ctx, end := withSignals()
	defer end()
	out := &output{w: stdout}
	app := newApp(out, stderr)
	err := app.RunContext(ctx, permute(app, helpLast(args)))
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	code, text := verdict(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		code, text = exitInterrupted, "interrupted"
	}
	if text != "" {
		fmt.Fprintln(stderr, "hopbed:", clean2(text))
	}
	return code
}

// verdict is the exit status that an error means, and what there is to say: an
// error may be the end of the runs and a fault of the clean-up in one.
func verdict(err error) (code int, text string) {
	if err == nil {
		return exitOK, ""
	}
	var e *exit
	if errors.As(err, &e) {
		return e.code, strings.TrimSpace(err.Error())
	}
	return exitError, err.Error()
}

// output remembers the first error, so that no command has to check each line
// that it writes.
type output struct {
	w   io.Writer
	err error
}

// Write writes, or returns the first error again.
func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	o.err = err
	return n, err
}

// helpLast lets "help run" mean "run --help".
func helpLast(args []string) []string {
	if len(args) < 2 || args[1] != "help" {
		return args
	}
	return append(append([]string{args[0]}, args[2:]...), "--help")
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
			listCommand(), checkCommand(), runCommand(stderr), reproduceCommand(stderr),
			reportCommand(), compareCommand(), resultsCommand(), showCommand(), exportCommand(),
			deployCommand(),
			topologyCommand(stderr), upCommand(stderr), execCommand(stderr), setCommand(), statusCommand(), downCommand(), hopCommand(stderr), benchCommand(), doctorCommand(), cleanCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("there is no command %q: see hopbed --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		strict(c, usage)
	}
	return app
}

// strict makes a command refuse what it would ignore: arguments that it does
// not take, and subcommands that it does not have.
func strict(c *cli.Command, usage cli.OnUsageErrorFunc) {
	c.OnUsageError = usage
	c.HideHelpCommand = true
	for _, s := range c.Subcommands {
		strict(s, usage)
	}
	do := c.Action
	switch {
	case len(c.Subcommands) > 0:
		c.Action = func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return usagef("there is no command %q in hopbed %s: see hopbed %s --help", ctx.Args().First(), c.Name, c.Name)
			}
			return cli.ShowSubcommandHelp(ctx)
		}
	case c.ArgsUsage == "":
		c.Action = func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return usagef("hopbed %s takes no argument, and %q is one: see hopbed %s --help", c.Name, ctx.Args().First(), c.Name)
			}
			return do(ctx)
		}
	}
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
