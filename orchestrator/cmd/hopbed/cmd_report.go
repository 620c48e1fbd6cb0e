package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/render"
)

// reportFormats is the table of what a report can be written as, by the file's
// extension.
var reportFormats = map[string]func(*render.Report, io.Writer) error{
	".html": (*render.Report).HTML,
	".md":   (*render.Report).Markdown,
	".json": (*render.Report).JSON,
	".tex":  (*render.Report).LaTeX,
}

func reportFormat(path string) (func(*render.Report, io.Writer) error, error) {
	if f, ok := reportFormats[strings.ToLower(filepath.Ext(path))]; ok {
		return f, nil
	}
	return nil, usagef("%s: a report is a file that ends in .html, .md, .json or .tex", path)
}

func writeReport(ctx context.Context, st *store.Store, campaigns []int64, path string) error {
	format, err := reportFormat(path)
	if err != nil {
		return err
	}
	r, err := buildReport(ctx, st, campaigns)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return writeFile(path, func(w io.Writer) error { return format(r, w) })
}

// figuresFlag asks for the figures as files.
func figuresFlag() cli.Flag {
	return &cli.StringFlag{Name: "figures", Usage: "write each figure into `FOLDER` too: .svg, .png, its numbers as .csv and as a table of pgfplots (.dat)"}
}

// figuresTo writes the figures where --figures asks for them.
func figuresTo(c *cli.Context, r *render.Report) error {
	if dir := c.String("figures"); dir != "" {
		return r.WriteFigures(dir)
	}
	return nil
}

// outputUsage says what -o takes.
const outputUsage = "write to `FILE`, .html, .md, .json or .tex (tables for a paper) (default: Markdown on standard output)"

// writeTo writes a report to the file that -o names, or as Markdown to standard
// output, and its figures to the folder that --figures names.
func writeTo(c *cli.Context, r *render.Report) error {
	if err := figuresTo(c, r); err != nil {
		return err
	}
	path := c.String("o")
	if path == "" {
		return r.Markdown(c.App.Writer)
	}
	format, err := reportFormat(path)
	if err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error { return format(r, w) })
}

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:  "report",
		Usage: "write a comparison report of stored results",
		Flags: []cli.Flag{
			dbFlag(),
			&cli.Int64SliceFlag{Name: "campaign", Usage: "`ID` of a campaign; may be repeated (default: the newest, with those of the same command on other back ends)"},
			&cli.StringFlag{Name: "o", Usage: outputUsage},
			figuresFlag(),
		},
		Action: func(c *cli.Context) error {
			if o := c.String("o"); o != "" {
				if err := checkReportPath(o); err != nil {
					return err
				}
			}
			st, err := openRead(c)
			if err != nil {
				return err
			}
			defer st.Close()
			ids := c.Int64Slice("campaign")
			if len(ids) == 0 {
				k, err := st.LatestCampaign(c.Context)
				if err != nil {
					return err
				}
				// With those that the same command ran on other back ends.
				if ids, err = st.Batch(c.Context, k.ID); err != nil {
					return err
				}
			}
			r, err := buildReport(c.Context, st, ids)
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
			return writeTo(c, r)
		},
	}
}
