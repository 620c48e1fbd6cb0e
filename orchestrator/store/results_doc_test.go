package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RESULTS.md names every column of every table in the table's own section.
func TestEveryColumnIsDocumented(t *testing.T) {
	b, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(b), "\n## ")[1:] {
		name, text, _ := strings.Cut(s, "\n")
		sections[name] = text
	}
	st, err := Open(t.Context(), filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, table := range ExportTables() {
		var cols []string
		if err := st.r.SelectContext(t.Context(), &cols, "SELECT name FROM pragma_table_xinfo(?)", table); err != nil {
			t.Fatal(err)
		}
		if len(cols) == 0 {
			t.Errorf("table %s has no columns", table)
		}
		for _, c := range cols {
			if !strings.Contains(sections[table], "`"+c+"`") {
				t.Errorf("RESULTS.md does not explain %s.%s", table, c)
			}
		}
	}
}
