package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
)

// changeFlags are the options with which a command line changes an experiment.
func changeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quick", DisableDefaultText: true, Usage: "run the file's shortened variant; results are marked: not for conclusions"},
		&cli.StringSliceFlag{Name: "set", Usage: "change a value of the file, `KEY=VALUE` (repeatable), such as radio.rate=5.5mbit"},
		&cli.StringFlag{Name: "repeat", Usage: "make `N` repetitions"},
		&cli.StringFlag{Name: "seed", Usage: "take `N` as the base of every random choice"},
		&cli.StringFlag{Name: "duration", Usage: "measure for `TIME`, such as 60s"},
	}
}

// load reads an experiment by the name of a shipped one or by a file's path,
// and applies the command line's changes, after those that the command itself
// makes.
func load(c *cli.Context, first ...spec.Assignment) (*spec.Experiment, error) {
	name := c.Args().First()
	switch {
	case name == "":
		return nil, usagef("which experiment? Give a file or a name of: %s", strings.Join(library.Names(), ", "))
	case c.Args().Len() > 1:
		return nil, usagef("one experiment at a time: %q is too much", c.Args().Get(1))
	}
	e, err := read(name)
	if err != nil {
		return nil, err
	}
	if c.Bool("quick") {
		if err := e.ApplyQuick(); err != nil {
			return nil, err
		}
	}
	sets := slices.Clone(first)
	for _, s := range c.StringSlice("set") {
		a, err := spec.ParseAssignment(s)
		if err != nil {
			return nil, &exit{exitUsage, err}
		}
		sets = append(sets, a)
	}
	var own []string
	for _, key := range []string{"repeat", "seed", "duration"} {
		if c.IsSet(key) {
			sets = append(sets, spec.Assignment{Key: key, Value: c.String(key)})
			own = append(own, key)
		}
	}
	if err := e.Set(sets...); err != nil {
		return nil, byOption(err, own)
	}
	return e, nil
}

// byOption names the options that stand for an assignment as the user wrote
// them: --seed, not --set seed.
func byOption(err error, keys []string) error {
	var all *spec.Errors
	if !errors.As(err, &all) {
		return err
	}
	for _, p := range all.Problems {
		for _, key := range keys {
			if p.Pos.Origin == "--set "+key {
				p.Pos.Origin = "--" + key
			}
		}
	}
	return err
}

// shippedOrHere reads a file that a shipped experiment names: one that is shipped
// beside it, else one that --set names, relative to the working directory.
func shippedOrHere(name string) ([]byte, error) {
	if b, err := library.File(name); err == nil {
		return b, nil
	}
	return spec.Beside(".")(name)
}

// read finds an experiment: a path wins over a shipped name only when it looks
// like one.
func read(name string) (*spec.Experiment, error) {
	if src, ok := library.Source(name); ok {
		return spec.ParseFiles(name+".yaml (shipped)", src, shippedOrHere)
	}
	e, err := spec.Load(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		meant := ""
		if s := spec.Suggest(name, library.Names()); s != "" {
			meant = "; did you mean " + s + "?"
		}
		return nil, fmt.Errorf("there is neither a file nor a shipped experiment %q: hopbed list shows those that are shipped%s", name, meant)
	}
	return e, err
}
