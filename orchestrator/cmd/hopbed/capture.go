package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/artifact"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// captureFlags are the options that make runs leave a capture or an event log.
func captureFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "trace", Usage: "write to `FILE`, .pcapng for Wireshark, what a sniffer would see: the radio, and wires where flows leave their sources; of several runs each gets its own, named after it"},
		&cli.StringFlag{Name: "events", Usage: "write to `FILE` a log of one readable line an event; of several runs each gets its own"},
		&cli.Int64Flag{Name: "snaplen", Value: int64(capture.DefaultSnapLen), Usage: "keep `N` bytes of each packet in the trace, from its IP header on; 0 = all"},
		&cli.StringSliceFlag{Name: "trace-at", Usage: "trace only the interface of this `NAME`, such as air (the radio) or server:eth0 (repeatable), or all; Wireshark takes what it sees at two for TCP's retransmissions, so look at one: tshark -r FILE -Y 'frame.interface_name == \"server:eth0\"' -w server.pcapng"},
		&cli.BoolFlag{Name: "overwrite", DisableDefaultText: true, Usage: "replace files of --trace and --events that exist"},
	}
}

// captureFiles are the files that the command line asks for, nil for none. They
// can be written, and none is there that must not be replaced.
// read are the files that the experiment came from.
func captureFiles(c *cli.Context, p *plan.Plan, backends, read []string) (*artifact.Files, error) {
	w := artifact.Wanted{
		Packets: c.String("trace"), Events: c.String("events"), SnapLen: vtime.Bytes(c.Int64("snaplen")), At: c.StringSlice("trace-at"),
		Overwrite: c.Bool("overwrite"), Keep: append(read, c.String("db"), c.String("report")),
	}
	for _, name := range []string{"snaplen", "trace-at"} {
		if c.IsSet(name) && w.Packets == "" {
			return nil, usagef("--%s belongs to --trace FILE", name)
		}
	}
	switch {
	case len(w.At) > 1 && slices.Contains(w.At, artifact.Everywhere):
		return nil, usagef("--trace-at %s is every interface already: leave the others out", artifact.Everywhere)
	case w.SnapLen < 0:
		return nil, usagef("--snaplen %d: want bytes, 0 = all", w.SnapLen)
	case c.IsSet("trace") && w.Packets == "", c.IsSet("events") && w.Events == "":
		return nil, usagef("--trace and --events need the name of a file")
	}
	for _, name := range []string{"db", "report"} {
		if v := c.String(name); v != "" && (v == w.Packets || v == w.Events) {
			return nil, usagef("--%s and --trace or --events name the same file %s", name, v)
		}
	}
	f := artifact.New(w, p, len(backends))
	if err := f.Place(); err != nil {
		return nil, err
	}
	if c.Bool("resume") { // only of the runs that are missing, which are not known yet
		return f, nil
	}
	for _, b := range backends {
		if err := f.Check(p.Runs, b); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// sources are the files that an experiment of this name or path was read from.
func sources(name string, e *spec.Experiment) (paths []string) {
	if _, shipped := library.Source(name); shipped {
		return nil
	}
	for _, f := range e.Files() {
		path := filepath.FromSlash(f.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(name), path)
		}
		paths = append(paths, path)
	}
	return append(paths, name)
}

// showHint says how to look at a capture whose packets are in it more than once.
func showHint(c *cli.Context, text string, w io.Writer) {
	switch {
	case text == "" || c.Bool("quiet"):
	case c.Bool("json"):
		newJSON(w).emit("hint", text)
	default:
		fmt.Fprintln(w, "trace:", text)
	}
}

// unkept says that runs lack their files although they have their results.
func unkept(n int) error {
	if n == 0 {
		return nil
	}
	runs := "1 run has"
	if n > 1 {
		runs = fmt.Sprintf("%d runs have", n)
	}
	return fmt.Errorf("%s no capture, or an incomplete one: the warnings say why; the results are stored", runs)
}
