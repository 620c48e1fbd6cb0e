package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/artifact"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// captureFlags are the options that make runs leave a capture or an event log.
func captureFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "trace", Usage: "write what a sniffer would see, `FILE` .pcapng for Wireshark; of several runs each gets its own, named after it"},
		&cli.StringFlag{Name: "events", Usage: "write a log of one readable line an event, `FILE`; of several runs each gets its own"},
		&cli.Int64Flag{Name: "snaplen", Value: int64(capture.DefaultSnapLen), Usage: "keep `N` bytes of each packet in the trace, from its IP header on; 0 = all"},
		&cli.StringSliceFlag{Name: "trace-at", Usage: "trace one interface only, `NAME` such as air (the radio) or server:eth0 (repeatable)"},
		&cli.BoolFlag{Name: "overwrite", DisableDefaultText: true, Usage: "replace files of --trace and --events that exist"},
	}
}

// captureFiles are the files that the command line asks for, nil for none. They
// can be written, and none is there that must not be replaced.
func captureFiles(c *cli.Context, p *plan.Plan, backends []string) (*artifact.Files, error) {
	w := artifact.Wanted{
		Packets: c.String("trace"), Events: c.String("events"), SnapLen: vtime.Bytes(c.Int64("snaplen")), At: c.StringSlice("trace-at"),
		Overwrite: c.Bool("overwrite"),
	}
	for _, name := range []string{"snaplen", "trace-at"} {
		if c.IsSet(name) && w.Packets == "" {
			return nil, usagef("--%s belongs to --trace FILE", name)
		}
	}
	switch {
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
