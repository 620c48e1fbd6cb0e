package store

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
)

const hostile = "a,\"b\"\r\n<script>\x1b[31m\u202e"

func exported(t *testing.T, s *Store, table string, format Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(context.Background(), &b, table, format, Filter{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExport(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c := campaign(t, s)
	rec := record(c.ID, 1, 3)
	rec.Samples[2].TUs = 500_000 // a gap
	rec.Nodes[1].Name = hostile
	third := 3.0
	rec.Nodes[0].XM = Some(1 / third)
	if err := s.SaveRun(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSurvey(ctx, survey(c.ID, "n1")); err != nil {
		t.Fatal(err)
	}

	for _, tab := range ExportTables() {
		text := exported(t, s, tab, FormatCSV)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %d rows, %v", tab, len(rows), err)
		}
		var objs []map[string]any
		dec := json.NewDecoder(strings.NewReader(exported(t, s, tab, FormatJSON)))
		dec.UseNumber()
		if err := dec.Decode(&objs); err != nil {
			t.Fatalf("%s: %v", tab, err)
		}
		if objs[0]["backend"] != "sim" || objs[len(objs)-1]["backend"] != "sim" {
			t.Errorf("%s does not say which back end its rows came from", tab)
		}
		if len(objs) != len(rows)-1 || len(objs[0]) != len(rows[0]) {
			t.Errorf("%s: CSV %d × %d, JSON %d × %d", tab, len(rows)-1, len(rows[0]), len(objs), len(objs[0]))
		}
	}

	nodes := exported(t, s, "nodes", FormatCSV)
	want := "run_id,node,name,address,x_m,y_m,facts,wired,bridge,backend\r\n" +
		"1,0,n01,10.77.0.1,0.3333333333333333,1.5,{},0,0,sim\r\n" +
		"1,1,\"a,\"\"b\"\"\r\n<script>\x1b[31m\u202e\",10.77.0.2,,,{},1,1,sim\r\n"
	if nodes != want {
		t.Errorf("nodes:\n got %q\nwant %q", nodes, want)
	}

	// NULL is an empty cell and empty text is "".
	runs := exported(t, s, "runs", FormatCSV)
	if line := strings.Split(runs, "\r\n")[1]; !strings.Contains(line, `,[],"[""a warning""]","",00ff,,120.5,,,,1152921504606846976,`) {
		t.Errorf("run: %s", line)
	}
	if !strings.Contains(runs, ",9223372036854775808,") {
		t.Errorf("the seed 2^63 is not exact: %s", runs)
	}

	// A sample's goodput is over the time that really passed.
	samples, err := csv.NewReader(strings.NewReader(exported(t, s, "samples", FormatCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := len(samples[0]) - 1
	if samples[0][last] != "goodput_bps" {
		t.Fatalf("columns: %v", samples[0])
	}
	for i, want := range []string{"", "80000.0", "20000.0"} {
		if got := samples[i+1][last]; got != want {
			t.Errorf("sample %d: goodput %q, want %q", i, got, want)
		}
	}

	if got := exported(t, s, "flows", FormatJSON); !strings.Contains(got, `"path":[0,1],`) || !strings.Contains(got, `"params":{"loss":"20%","transport":"hop"}`) || !strings.Contains(got, `"setup_s":null`) {
		t.Errorf("flows: %s", got)
	}
}

func TestExportOfNothing(t *testing.T) {
	s := temp(t)
	if got := strings.TrimSpace(exported(t, s, "flows", FormatJSON)); strings.Join(strings.Fields(got), "") != "[]" {
		t.Errorf("JSON: %q", got)
	}
	if got := exported(t, s, "nodes", FormatCSV); got != "run_id,node,name,address,x_m,y_m,facts,wired,bridge,backend\r\n" {
		t.Errorf("CSV: %q", got)
	}
}

func TestExportNamesWhatThereIs(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	if err := s.Export(ctx, &bytes.Buffer{}, "sqlite_master", FormatCSV, Filter{}); err == nil || !strings.Contains(err.Error(), "flows, links, messages, node_stats") {
		t.Errorf("unknown table: %v", err)
	}
	if err := s.Export(ctx, &bytes.Buffer{}, "flows", "xml", Filter{}); err == nil || !strings.Contains(err.Error(), "csv or json") {
		t.Errorf("unknown format: %v", err)
	}
}

// A pipe that closes early (export | head) ends the export with its error.
func TestExportStopsWithItsReader(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c := campaign(t, s)
	if err := s.SaveRun(ctx, record(c.ID, 1, 20_000)); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("reader gone")
	err := s.Export(ctx, failingWriter{gone}, "samples", FormatCSV, Filter{})
	if !errors.Is(err, gone) {
		t.Errorf("error: %v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// Every float64 that can be stored reads back as itself.
func TestFloatsAreExact(t *testing.T) {
	for _, v := range []float64{0, 1, -1, 0.1, 1.0 / 3, 1e15, 1e15 - 1, 123456789012345680, 5e-324, 1.7976931348623157e308, -2.5e-7} {
		text := string(appendFloat(nil, v))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got != v {
			t.Errorf("%v was written as %s", v, text)
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON number", text)
		}
	}
}
