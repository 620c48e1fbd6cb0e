package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/render"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare two campaigns, or two transports of one, point by point",
		ArgsUsage: "A B",
		Description: "A and B are each\n\n" +
			"   3              the campaign 3 of --db\n" +
			"   a.db           the newest campaign of that database\n" +
			"   a.db#3         its campaign 3\n" +
			"   hop, tcp/cubic two transports of one campaign: that of --campaign, else the newest\n\n" +
			"Points are matched by their parameters, repetitions by number and seed. For each point:\n" +
			"the ratio A/B of goodput, of the share sent again and of the mean round-trip time, and the\n" +
			"time-outs, each the median over the repetitions with a 95 % interval.\n" +
			"A campaign in virtual time beside one on a kernel is put first, and judged by the aims of\n" +
			"the model:\n" + wrap(aimsLine(), 88) + ".\n\n" +
			wrap(dataset.CountRule, 88) + "\n\n" + wrap(dataset.FlowRule, 88),
		Flags: []cli.Flag{
			dbFlag(),
			&cli.Int64Flag{Name: "campaign", DefaultText: "the newest", Usage: "`ID` of the campaign whose transports to compare"},
			&cli.StringFlag{Name: "o", Usage: outputUsage},
			figuresFlag(),
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "JSON on standard output"},
		},
		Action: compareAction,
	}
}

func aimsLine() string {
	var out []string
	for _, a := range dataset.Aims {
		out = append(out, fmt.Sprintf("%s within %g %%", strings.ReplaceAll(string(a.Quantity), "_", " "), 100*a.Within))
	}
	return strings.Join(out, ", ")
}

// wrap breaks a text into lines of at most so many characters.
func wrap(text string, most int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

func compareAction(c *cli.Context) error {
	if c.Args().Len() != 2 {
		return usagef("compare takes two campaigns or two transports, not %d: see hopbed compare --help", c.Args().Len())
	}
	if o := c.String("o"); o != "" {
		if c.Bool("json") {
			return usagef("--json writes to standard output, -o to a file: give one of them")
		}
		if err := checkReportPath(o); err != nil {
			return err
		}
	}
	a, b := c.Args().Get(0), c.Args().Get(1)
	comparison, shut, err := compared(c, a, b)
	defer shut()
	if err != nil {
		return err
	}
	r := render.Compared(comparison, version())
	if c.Bool("json") {
		if err := figuresTo(c, r); err != nil {
			return err
		}
		return r.JSON(c.App.Writer)
	}
	return writeTo(c, r)
}

// compared makes the comparison that the two arguments ask for. The databases
// stay open until shut is called.
func compared(c *cli.Context, a, b string) (_ *dataset.Comparison, shut func(), err error) {
	var open databases
	shut = open.shut
	if isCampaign(a) != isCampaign(b) {
		return nil, shut, usagef("%s and %s: a campaign (a number, FILE.db or FILE.db#ID) cannot be compared with a transport", a, b)
	}
	if !isCampaign(a) {
		st, err := open.read(c.Context, c.String("db"))
		if err != nil {
			return nil, shut, err
		}
		id, err := campaignOr(c.Context, st, c.Int64("campaign"))
		if err != nil {
			return nil, shut, err
		}
		set, err := dataset.Load(c.Context, st, id)
		if err != nil {
			return nil, shut, err
		}
		for _, t := range []string{a, b} {
			if have := set.Transports(); !slices.Contains(have, t) {
				return nil, shut, fmt.Errorf("campaign %d of %s has no transport %q: it has %s", id, c.String("db"), t, strings.Join(have, ", "))
			}
		}
		out, err := dataset.CompareTransports(c.Context, set, a, b, render.BootstrapSeed)
		return out, shut, err
	}
	if c.IsSet("campaign") {
		return nil, shut, usagef("--campaign is for two transports: %s and %s are campaigns", a, b)
	}
	var sets []*dataset.Set
	for _, arg := range []string{a, b} {
		set, err := open.campaign(c.Context, c.String("db"), arg)
		if err != nil {
			return nil, shut, err
		}
		sets = append(sets, set)
	}
	if sets[0].From == sets[1].From {
		for _, s := range sets {
			s.From = "" // one database needs no name
		}
	}
	out, err := dataset.CompareCampaigns(c.Context, sets[0], sets[1], render.BootstrapSeed)
	return out, shut, err
}

// isCampaign tells the name of a campaign from that of a transport, which has
// neither an ending nor a number alone.
func isCampaign(arg string) bool {
	if _, err := strconv.ParseInt(arg, 10, 64); err == nil {
		return true
	}
	if path, id, ok := strings.Cut(arg, "#"); ok && path != "" && id != "" {
		return true
	}
	if strings.HasSuffix(arg, ".db") {
		return true
	}
	st, err := os.Stat(arg)
	return err == nil && st.Mode().IsRegular()
}

// databases are those that a command has open, each once.
type databases map[string]*store.Store

func (d *databases) read(ctx context.Context, path string) (*store.Store, error) {
	if st := (*d)[path]; st != nil {
		return st, nil
	}
	st, err := store.OpenRead(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database %s: hopbed run makes one, --db names another", path)
	}
	if err != nil {
		return nil, err
	}
	if *d == nil {
		*d = databases{}
	}
	(*d)[path] = st
	return st, nil
}

func (d *databases) shut() {
	for _, st := range *d {
		st.Close() // only read from
	}
}

// campaign loads the campaign that an argument names.
func (d *databases) campaign(ctx context.Context, db, arg string) (*dataset.Set, error) {
	path, number := arg, ""
	if _, err := strconv.ParseInt(arg, 10, 64); err == nil {
		path, number = db, arg
	} else if before, after, ok := cutLast(arg, "#"); ok {
		path, number = before, after
	}
	var id int64
	if number != "" {
		var err error
		if id, err = strconv.ParseInt(number, 10, 64); err != nil || id < 1 {
			return nil, usagef("%s: the campaign after # is a number, not %q: hopbed results --db %s lists them", arg, number, path)
		}
	}
	st, err := d.read(ctx, path)
	if err != nil {
		return nil, err
	}
	if id, err = campaignOr(ctx, st, id); err != nil {
		return nil, err
	}
	set, err := dataset.Load(ctx, st, id)
	if err != nil {
		return nil, err
	}
	set.From = path
	return set, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// campaignOr is the campaign with this id, or the newest for 0.
func campaignOr(ctx context.Context, st *store.Store, id int64) (int64, error) {
	if id != 0 {
		return id, nil
	}
	k, err := st.LatestCampaign(ctx)
	if err != nil {
		return 0, err
	}
	return k.ID, nil
}

// printAims says after a run on several back ends how far the model is from the
// kernel, and where the table is.
func printAims(c *cli.Context, st *store.Store, ids []int64) error {
	w := c.App.Writer
	var sets []*dataset.Set
	for _, id := range ids {
		set, err := dataset.Load(c.Context, st, id)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	for i, a := range sets {
		for _, b := range sets[i+1:] {
			k, err := dataset.CompareCampaigns(c.Context, a, b, render.BootstrapSeed)
			if err != nil {
				fmt.Fprintf(w, "\nno comparison: %s\n", clean(err.Error()))
				continue
			}
			fmt.Fprintf(w, "\n%s: ratios of %d points; hopbed compare %d %d shows each\n", k.Backends(), len(k.Points), k.A.Set.Campaign.ID, k.B.Set.Campaign.ID)
			if !k.Judged {
				continue
			}
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			fmt.Fprintln(tw, "aim\tmet\tmissed\tflows differ\ttoo few events\t(not sure, of the first three)")
			for _, t := range k.Tally() {
				fmt.Fprintf(tw, "%s ± %g %%\t%d\t%d\t%d\t%d\t%d\n", strings.ReplaceAll(string(t.Quantity), "_", " "), 100*t.Within, t.Met, t.Missed, t.FlowsDiffer, t.TooFew, t.Unsure)
			}
			if err := tw.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
