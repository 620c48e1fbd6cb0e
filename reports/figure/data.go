package figure

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/reports/safetext"
)

// table is the data of a figure: cells are of type string, int or float64.
type table struct {
	cols []string
	rows [][]any
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// columns are those of the data, and the stamps'.
func (f *Figure) columns() []string {
	cols := slices.Clip(f.data.cols)
	for _, s := range f.stamps {
		cols = append(cols, s.column)
	}
	return cols
}

// cells calls row with the cells of every row, the stamps among them, as texts:
// missing stands for a value that does not exist, and quote sets texts.
func (f *Figure) cells(missing string, quote func(string) string, row func([]string) error) error {
	for _, r := range f.data.rows {
		cells := make([]string, len(r))
		for i, v := range r {
			switch v := v.(type) {
			case string:
				cells[i] = quote(v)
			case int:
				cells[i] = strconv.Itoa(v)
			case float64:
				cells[i] = missing
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					cells[i] = strconv.FormatFloat(v, 'g', -1, 64)
				}
			default:
				return fmt.Errorf("a cell of type %T", v)
			}
		}
		for _, s := range f.stamps {
			cells = append(cells, quote(s.value))
		}
		if err := row(cells); err != nil {
			return err
		}
	}
	return nil
}

// CSV writes the numbers behind the figure, with a header line. A value that
// does not exist is an empty cell.
func (f *Figure) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	err := c.Write(f.columns())
	if err == nil {
		err = f.cells("", func(s string) string { return s }, c.Write)
	}
	if c.Flush(); err == nil {
		err = c.Error()
	}
	if err != nil {
		return fmt.Errorf("figure %s: %w", f.ID, err)
	}
	return nil
}

// PGF writes the numbers behind the figure as pgfplots reads a table: columns
// between tabs (col sep=tab), names of letters, digits and dashes, nan for a value
// that does not exist. Texts are in braces, with what TeX takes for commands
// written as itself.
func (f *Figure) PGF(w io.Writer) error {
	b := bufio.NewWriter(w)
	var cols []string
	for _, c := range f.columns() {
		cols = append(cols, pgfName(c))
	}
	b.WriteString(strings.Join(cols, "\t") + "\n")
	err := f.cells("nan", func(s string) string {
		if s == "" { // in the place of a number
			return "nan"
		}
		return "{" + safetext.TeX(s) + "}"
	}, func(cells []string) error {
		_, err := b.WriteString(strings.Join(cells, "\t") + "\n")
		return err
	})
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("figure %s: %w", f.ID, err)
	}
	return nil
}

// pgfName is a column's name without what TeX reads as more than a letter.
func pgfName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, s)
}
