package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves a command's options before its arguments, so that
// "run load30 --quick" means what "run --quick load30" means. The library stops
// reading options at the first argument. What follows "--" is left alone.
func permute(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	// Find the (sub)command; options of the program itself come before it.
	i, cmds := 1, app.Commands
	var cmd *cli.Command
	for i < len(args) && len(cmds) > 0 {
		if strings.HasPrefix(args[i], "-") {
			if cmd != nil {
				break
			}
			i++
			continue
		}
		next := find(cmds, args[i])
		if next == nil {
			break
		}
		cmd, cmds = next, next.Subcommands
		i++
	}
	if cmd == nil {
		return args
	}
	head := append([]string(nil), args[:i]...)
	var flags, rest []string
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			if cmd.SkipFlagParsing {
				return args
			}
			continue
		}
		flags = append(flags, a)
		name := strings.TrimLeft(a, "-")
		if strings.Contains(name, "=") || !takesValue(cmd, name) {
			continue
		}
		if i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return append(append(head, flags...), rest...)
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func takesValue(cmd *cli.Command, name string) bool {
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if n == name {
				d, ok := f.(cli.DocGenerationFlag)
				return ok && d.TakesValue()
			}
		}
	}
	return false
}
