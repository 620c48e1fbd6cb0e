package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/store"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a table of results as CSV or JSON to standard output",
		Flags: []cli.Flag{
			dbFlag(),
			&cli.StringFlag{Name: "table", Usage: "name of the `TABLE`: " + strings.Join(store.ExportTables(), ", ")},
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "csv or json"},
			&cli.Int64Flag{Name: "campaign", DefaultText: "all", Usage: "only the campaign with this `ID`"},
			&cli.Int64Flag{Name: "run", DefaultText: "all", Usage: "only the run with this `ID`"},
			&cli.StringFlag{Name: "o", Usage: "write to `FILE` instead"},
		},
		Action: func(c *cli.Context) error {
			if c.String("table") == "" {
				return usagef("which table? --table takes one of: %s", strings.Join(store.ExportTables(), ", "))
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
			if c.String("o") == "" {
				return st.Export(c.Context, c.App.Writer, c.String("table"), store.Format(c.String("format")), f)
			}
			return writeFile(c.String("o"), func(w io.Writer) error {
				return st.Export(c.Context, w, c.String("table"), store.Format(c.String("format")), f)
			})
		},
	}
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
