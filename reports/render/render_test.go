package render

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/internal/fixture"
)

// published are made-up claims about the made-up data.
func published(string) ([]Published, error) {
	return []Published{
		{ID: "test/ratio", Text: "The median goodput of 30 flows is 90 times that of TCP.", Value: new(90.0), Unit: "×", Source: "P §5.3", Metric: "placement-median-ratio", Subject: "hop",
			Threshold: &Threshold{Min: new(10.0), Source: "R"}, MinRepetitions: 5},
		{ID: "test/aggregate", Text: "The aggregate is comparable or better.", Unit: "×", Source: "P §5.3", Metric: "aggregate-ratio", Subject: "hop", Threshold: &Threshold{Min: new(0.9), Source: "R"}},
		{ID: "test/jain", Text: "Hop is fairer than TCP by Jain's index.", Source: "P §5.3", Metric: "jain-difference", Subject: "hop", Threshold: &Threshold{Min: new(0.0), Source: "R"}},
		{ID: "test/reverse", Text: "The made-up transport is slower than TCP.", Value: new(0.5), Unit: "×", Source: "nobody", Metric: "median-ratio", Subject: "hop", Threshold: &Threshold{Max: new(0.7)}},
		{ID: "test/place", Text: "The lower quartile improves 28 times over single links of that building.", Value: new(28.0), Unit: "×", Source: "P §1", NotTestable: "the links are those of one building"},
	}, nil
}

// build fills a database and builds the report of its campaigns.
func build(t testing.TB, o Options, fills ...fixture.Options) *Report {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var ids []int64
	for _, f := range fills {
		id, err := fixture.Fill(ctx, st, f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	r, err := Build(ctx, st, ids, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func html(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
