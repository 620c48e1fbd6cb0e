package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/safetext"
)

func formatSeed(s store.Seed) string { return fmt.Sprint(uint64(s)) }

// Markdown writes the report as GitHub Flavored Markdown whose tables are
// aligned, so that it reads well on a terminal too.
func (r *Report) Markdown(w io.Writer) error {
	m := &markdown{bufio.NewWriter(w)}
	m.heading(1, r.Title)
	if r.Pack != nil {
		for _, t := range packTables(r.Pack) {
			m.table(1, &t)
		}
	}
	for i := range r.Comparisons {
		m.comparison(&r.Comparisons[i], len(r.Sections) > 0)
	}
	for i := range r.Sections {
		m.section(&r.Sections[i], len(r.Sections) > 1)
	}
	m.heading(2, "How the numbers were obtained")
	for _, d := range r.definitions() {
		fmt.Fprintf(m.w, "- **%s**: %s\n", escapeMarkdown(d.Term), escapeMarkdown(d.Text))
	}
	return m.w.Flush()
}

type markdown struct{ w *bufio.Writer }

func (m *markdown) heading(level int, s string) {
	fmt.Fprintf(m.w, "%s %s\n\n", strings.Repeat("#", level), escapeMarkdown(safetext.Line(s, 0)))
}

func (m *markdown) comparison(c *Comparison, many bool) {
	if many { // else it is the report's title
		m.heading(2, "Comparison: "+c.title())
	}
	for _, b := range c.banners() {
		fmt.Fprintf(m.w, "> **%s**\n>\n\n", escapeMarkdown(b.Cells[0]))
	}
	for _, f := range c.facts() {
		fmt.Fprintf(m.w, "- %s: %s\n", escapeMarkdown(f.Name), escapeMarkdown(f.Value))
	}
	if c.Refused != "" {
		m.w.WriteString("\n")
		return
	}
	for _, t := range c.short() {
		fmt.Fprintf(m.w, "- %s\n", escapeMarkdown(t))
	}
	m.w.WriteString("\n")
	for _, t := range c.tables() {
		m.table(2, &t)
	}
}

func (m *markdown) section(s *Section, many bool) {
	level := 2
	if many {
		m.heading(2, s.heading())
		level = 3
	}
	for _, b := range s.banners() {
		text := escapeMarkdown(b.Cells[0])
		if b.Mark != "good" {
			text = "**" + text + "**"
		}
		fmt.Fprintf(m.w, "> %s\n>\n", text)
	}
	m.w.WriteString("\n")
	for _, f := range s.facts() {
		fmt.Fprintf(m.w, "- %s: %s\n", escapeMarkdown(f.Name), escapeMarkdown(f.Value))
	}
	m.w.WriteString("\n")
	for _, t := range append(s.claimTables(), s.pointTables()...) {
		m.table(level-1, &t)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(s.Groups) > 1 {
			m.heading(level, g.Data.Title())
		}
		for _, t := range g.short() {
			fmt.Fprintf(m.w, "- %s\n", escapeMarkdown(t))
		}
		m.w.WriteString("\n")
		for _, t := range g.tables() {
			m.table(level, &t)
		}
	}
	for _, t := range s.tables() {
		m.table(level, &t)
	}
	m.heading(level, "Host")
	for _, f := range s.hostFacts() {
		fmt.Fprintf(m.w, "- %s: %s\n", escapeMarkdown(f.Name), escapeMarkdown(f.Value))
	}
	fmt.Fprintf(m.w, "- seeds of the repetitions: %s\n\n", escapeMarkdown(s.repetitionSeeds()))
	m.heading(level, "Experiment file")
	m.code("yaml", safetext.Block(s.Set.Campaign.FileText))
}

func (m *markdown) table(level int, t *Table) {
	m.heading(level+1, t.Title)
	cells := [][]string{t.Head}
	for _, r := range t.Rows {
		cells = append(cells, r.Cells)
	}
	width := make([]int, len(t.Head))
	for i := range cells {
		row := make([]string, len(cells[i]))
		for j, c := range cells[i] {
			row[j] = escapeMarkdown(c)
			if i > 0 && t.Rows[i-1].Mark == "strong" {
				row[j] = "**" + row[j] + "**"
			}
			width[j] = max(width[j], utf8.RuneCountInString(row[j]), 3)
		}
		cells[i] = row
	}
	for i, row := range cells {
		for j, c := range row {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(c))
			if j > 0 && !t.Left[j] {
				c = pad + c
			} else {
				c += pad
			}
			fmt.Fprintf(m.w, "| %s ", c)
		}
		m.w.WriteString("|\n")
		if i > 0 {
			continue
		}
		for j := range row {
			if j > 0 && !t.Left[j] {
				fmt.Fprintf(m.w, "|-%s:", strings.Repeat("-", width[j]))
			} else {
				fmt.Fprintf(m.w, "|-%s-", strings.Repeat("-", width[j]))
			}
		}
		m.w.WriteString("|\n")
	}
	m.w.WriteString("\n")
	notes := t.below()
	notes = append(notes, t.Notes...)
	for _, n := range notes {
		fmt.Fprintf(m.w, "- %s\n", escapeMarkdown(n))
	}
	if len(notes) > 0 {
		m.w.WriteString("\n")
	}
}

// below lists the texts that belong below rows, those of equal text together.
func (t *Table) below() []string {
	var texts []string
	rows := map[string][]string{}
	for _, r := range t.Rows {
		if r.Below == "" {
			continue
		}
		if rows[r.Below] == nil {
			texts = append(texts, r.Below)
		}
		rows[r.Below] = append(rows[r.Below], r.Cells[0])
	}
	for i, text := range texts {
		what := t.Head[0]
		if len(rows[text]) > 1 {
			what += "s"
		}
		texts[i] = what + " " + strings.Join(rows[text], ", ") + ": " + text
	}
	return texts
}

// code writes a block in a fence that its text cannot close.
func (m *markdown) code(language, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(m.w, "%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(text, "\n"), fence)
}

// escapeMarkdown keeps text from being markup: HTML, links, images, emphasis,
// tables, code, and mentions of people. What cannot be markup where it stands
// is left readable.
func escapeMarkdown(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		next := rune(' ')
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch r {
		case '&':
			if next == '#' || unicode.IsLetter(next) {
				b.WriteString("&amp;")
				continue
			}
		case '<':
			if !unicode.IsSpace(next) {
				b.WriteString("&lt;")
				continue
			}
		case '\\', '`', '*', '_', '[', '|', '~', '$':
			b.WriteRune('\\')
		case ']':
			if next == '(' || next == '[' || next == ':' {
				b.WriteRune('\\')
			}
		case '#', '>', '+', '-', '!', '=':
			if i == 0 { // only there are they markup
				b.WriteRune('\\')
			}
		case '@':
			b.WriteString("@\u2060") // a word joiner: nobody is called
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
