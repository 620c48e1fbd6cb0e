package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/hopbed/hopbed/orchestrator/export"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// tableFormats are those of --format.
var tableFormats = []string{string(store.FormatCSV), string(store.FormatJSON), formatParquet, formatFlent}

const (
	formatParquet = "parquet"
	formatFlent   = "flent"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a table of results as CSV, JSON or Parquet, or the series of a run for flent",
		Description: "csv, json and parquet write a table of --table. flent writes the series of the one run of\n" +
			"--run as a data file of flent's test tcp_nup: the goodput of each flow with its sender's\n" +
			"congestion window and round-trip time; name it .flent.gz. Which flow is which stands in its\n" +
			"metadata (SERIES_META).",
		Flags: []cli.Flag{
			dbFlag(),
			&cli.StringFlag{Name: "table", Usage: "name of the `TABLE`: " + strings.Join(store.ExportTables(), ", ")},
			&cli.StringFlag{Name: "format", Value: "csv", Usage: strings.Join(tableFormats, ", ")},
			&cli.Int64Flag{Name: "campaign", DefaultText: "all", Usage: "only the campaign with this `ID`"},
			&cli.Int64Flag{Name: "run", DefaultText: "all", Usage: "only the run with this `ID`"},
			&cli.StringFlag{Name: "o", Usage: "write to `FILE` instead of standard output"},
		},
		Action: exportAction,
	}
}

func exportAction(c *cli.Context) error {
	format, table, path := c.String("format"), c.String("table"), c.String("o")
	switch {
	case !slices.Contains(tableFormats, format):
		return usagef("there is no format %q: --format takes %s", format, strings.Join(tableFormats, ", "))
	case format == formatFlent && table != "":
		return usagef("--format flent writes the series of a run, not a table: leave --table out and name the run with --run")
	case format == formatFlent && !c.IsSet("run"):
		return usagef("which run? --format flent takes one: --run ID (hopbed results lists them)")
	case format != formatFlent && table == "":
		return usagef("which table? --table takes one of: %s", strings.Join(store.ExportTables(), ", "))
	case (format == formatParquet || format == formatFlent) && path == "" && isTerminal(c.App.Writer):
		return usagef("--format %s is no text for a terminal: name a file with -o", format)
	}
	st, err := openRead(c)
	if err != nil {
		return err
	}
	defer st.Close()
	var f store.Filter
	if c.IsSet("campaign") {
		f.CampaignIDs = []int64{c.Int64("campaign")}
	}
	if c.IsSet("run") {
		f.RunIDs = []int64{c.Int64("run")}
	}
	write := func(w io.Writer) error {
		switch format {
		case formatParquet:
			return export.Parquet(c.Context, st, w, table, version(), f)
		case formatFlent:
			return export.Flent(c.Context, st, w, c.Int64("run"), filepath.Base(path), version())
		}
		return st.Export(c.Context, w, table, store.Format(format), f)
	}
	if path == "" {
		return write(c.App.Writer)
	}
	return writeFile(path, write)
}

// isTerminal tells that what is written would be shown to a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// tempPattern names the temporary files of writeFile.
const tempPattern = ".hopbed-*"

// writeFile writes a file whole or not at all: into a temporary file beside it,
// which then takes its name.
func writeFile(path string, write func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), tempPattern)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			_ = tmp.Close() // the reason is told
			_ = os.Remove(tmp.Name())
			err = fmt.Errorf("write %s: %w", path, cause(err))
		}
	}()
	if err := write(tmp); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// cause leaves out the name of a temporary file, which nobody knows.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p) && strings.HasPrefix(filepath.Base(p.Path), strings.TrimSuffix(tempPattern, "*")):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
