package render

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageCSS string

// view is what the template sees: texts that are harmless, and figures that
// this program drew. The template escapes the texts.
type view struct {
	Title       string
	Version     string
	CSS         template.CSS
	Comparisons []comparisonView
	Verdicts    []Table // of a paper
	Sections    []sectionView
	Definitions []definition
}

type comparisonView struct {
	ID, Heading string
	Banners     []Row
	Facts       []fact
	Short       []string
	Tables      []Table
	Figures     []figureView
}

type sectionView struct {
	ID       string
	Heading  string // "" when the report has one section only
	Banners  []Row
	Facts    []fact
	Claims   []Table
	Points   []Table      // of all groups
	Figures  []figureView // likewise
	Groups   []groupView
	Tables   []Table
	Host     []fact
	Seeds    string
	FileText string
}

type groupView struct {
	ID      string
	Heading string
	Short   []string
	Tables  []Table
	Figures []figureView
	Maps    []figureView
}

type figureView struct {
	ID, Title, Caption string
	SVG                template.HTML
	// The files behind the figure, inside the page.
	CSVLink, SVGLink template.URL
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"left": func(t Table, column int) bool { return column == 0 || t.Left[column] },
}).Parse(pageText))

// HTML writes the report as one page that needs nothing but itself: no script,
// no font, no network.
func (r *Report) HTML(w io.Writer) error {
	v := view{Title: safetext.Line(r.Title, 0), Version: safetext.Line(r.Version, 60), CSS: template.CSS(figure.CSS() + pageCSS), Definitions: r.definitions()}
	if r.Pack != nil {
		v.Verdicts = packTables(r.Pack)
	}
	for i := range r.Comparisons {
		c, err := r.Comparisons[i].view(len(r.Sections) > 0)
		if err != nil {
			return err
		}
		v.Comparisons = append(v.Comparisons, c)
	}
	for i := range r.Sections {
		s, err := r.Sections[i].view(len(r.Sections) > 1)
		if err != nil {
			return err
		}
		v.Sections = append(v.Sections, s)
	}
	// Through a buffer, so that a failing template leaves no half a page.
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Comparison) view(many bool) (comparisonView, error) {
	v := comparisonView{ID: c.ID, Banners: c.banners(), Facts: c.facts()}
	if many { // else it is the report's title
		v.Heading = "Comparison: " + c.title()
	}
	if c.Refused != "" {
		return v, nil
	}
	v.Short, v.Tables = c.short(), c.tables()
	for _, f := range c.Figures {
		fv, err := viewFigure(f)
		if err != nil {
			return v, err
		}
		v.Figures = append(v.Figures, fv)
	}
	return v, nil
}

func (s *Section) view(many bool) (sectionView, error) {
	c := &s.Set.Campaign
	v := sectionView{ID: s.ID, Banners: s.banners(), Facts: s.facts(), Tables: s.tables(), Host: s.hostFacts(), Seeds: s.repetitionSeeds(), FileText: safetext.Block(c.FileText)}
	if many {
		v.Heading = s.heading()
	}
	v.Claims, v.Points = s.claimTables(), s.pointTables()
	for _, f := range s.Figures {
		fv, err := viewFigure(f)
		if err != nil {
			return v, err
		}
		v.Figures = append(v.Figures, fv)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		gv := groupView{ID: g.ID, Short: g.short(), Tables: g.tables()}
		if len(s.Groups) > 1 {
			gv.Heading = safetext.Line(g.Data.Title(), 160)
		}
		for _, fs := range []struct {
			from []*figure.Figure
			to   *[]figureView
		}{{g.Figures, &gv.Figures}, {g.Maps, &gv.Maps}} {
			for _, f := range fs.from {
				fv, err := viewFigure(f)
				if err != nil {
					return v, err
				}
				*fs.to = append(*fs.to, fv)
			}
		}
		v.Groups = append(v.Groups, gv)
	}
	return v, nil
}

func viewFigure(f *figure.Figure) (figureView, error) {
	var csv bytes.Buffer
	if err := f.CSV(&csv); err != nil {
		return figureView{}, err
	}
	data := func(kind string, b []byte) template.URL {
		return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b))
	}
	return figureView{
		ID: f.ID, Title: safetext.Line(f.Title, 0), Caption: safetext.Line(f.Caption, 0), SVG: template.HTML(f.Inline()),
		CSVLink: data("text/csv", csv.Bytes()), SVGLink: data("image/svg+xml", f.SVG()),
	}, nil
}
