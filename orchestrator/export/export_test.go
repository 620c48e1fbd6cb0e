package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// filled is a database of one run with two flows, whose samples have a gap.
func filled(t *testing.T) (*store.Store, int64) {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	c := &store.Campaign{Name: "two", Backend: "sim", Seed: 1<<64 - 1, FileText: "hopbed: 1\n", Version: "test", HostFacts: store.Facts{"cpus": "2"}, Planned: 1}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	rec := &store.RunRecord{
		Run: store.Run{CampaignID: c.ID, Backend: "sim", Seed: 1 << 63, Repetition: 1, Params: store.Params{"transport": "tcp/cubic", "loss": "20%"}, Transport: "tcp/cubic",
			WarmupS: 1, DurationS: 4, SampleS: store.Some(0.5), WallS: 1.5, Started: store.StampOf(time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)), Status: store.RunComplete, Warnings: store.Strings{"<&>"}},
		Nodes: []store.Node{{Node: 0, Name: "n01"}, {Node: 1, Name: "n,\"02\"\n"}},
	}
	for k := range 2 {
		rec.Flows = append(rec.Flows, store.Flow{Flow: k, Transport: "tcp/cubic", CC: "cubic", Workload: "continual", Src: 0, Dst: 1, Hops: 1, StopS: 5, Bytes: 500_000,
			GoodputBps: store.Goodput(500_000, 4), Status: store.FlowOK, Counters: store.Counters{"x": 2}})
		for i := range 11 {
			if k == 1 && (i == 4 || i == 5) {
				continue
			}
			rec.Samples = append(rec.Samples, store.Sample{Flow: k, Side: store.SideDst, Node: 1, TUs: int64(i) * 500_000, DeliveredBytes: store.Some(int64(i*(k+1)) * 62_500)},
				store.Sample{Flow: k, Side: store.SideSrc, Node: 0, TUs: int64(i)*500_000 + 1, CwndPackets: store.Some(10 + float64(i)), SRTTUs: store.Some(int64(20_000 + i))})
		}
	}
	if err := st.SaveRun(ctx, rec); err != nil {
		t.Fatal(err)
	}
	return st, rec.Run.ID
}

// Every table, read back, has the values of the JSON export.
func TestParquetIsTheTable(t *testing.T) {
	st, _ := filled(t)
	ctx := context.Background()
	for _, table := range store.ExportTables() {
		var file, text bytes.Buffer
		if err := Parquet(ctx, st, &file, table, "v1", store.Filter{}); err != nil {
			t.Fatal(err)
		}
		if err := st.Export(ctx, &text, table, store.FormatJSON, store.Filter{}); err != nil {
			t.Fatal(err)
		}
		var want []map[string]any
		dec := json.NewDecoder(&text)
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if v, _ := f.Lookup(ParquetTable); v != table {
			t.Errorf("%s: the file says %q", table, v)
		}
		if f.NumRows() != int64(len(want)) {
			t.Fatalf("%s: %d rows, want %d", table, f.NumRows(), len(want))
		}
		if len(want) == 0 {
			continue
		}
		columns := f.Schema().Columns()
		if len(columns) != len(want[0]) {
			t.Errorf("%s: %d columns, want %d", table, len(columns), len(want[0]))
		}
		r := parquet.NewReader(f)
		rows := make([]parquet.Row, len(want))
		if n, err := r.ReadRows(rows); n != len(want) || err != nil && err != io.EOF {
			t.Fatalf("%s: %d rows, %v", table, n, err)
		}
		for i, row := range rows {
			for j, v := range row {
				name := columns[j][0]
				if got, want := asText(t, v), wanted(t, want[i][name]); got != want {
					t.Errorf("%s, row %d, %s: %q, want %q", table, i, name, got, want)
				}
			}
		}
		r.Close()
	}
}

// asText is a value in one writing for all readers.
func asText(t *testing.T, v parquet.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Kind() == parquet.Int64:
		return fmt.Sprint(float64(v.Int64()))
	case v.Kind() == parquet.Double:
		return fmt.Sprint(v.Double())
	case v.Kind() == parquet.ByteArray:
		return canonical(string(v.ByteArray()))
	}
	t.Fatalf("a value of the kind %v", v.Kind())
	return ""
}

// canonical writes JSON documents alike.
func canonical(s string) string {
	var v any
	if (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && json.Unmarshal([]byte(s), &v) == nil {
		b, err := json.Marshal(v)
		if err == nil {
			return string(b)
		}
	}
	return s
}

func wanted(t *testing.T, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(f)
	case string:
		return canonical(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return canonical(string(b))
}

func TestParquetOfNothing(t *testing.T) {
	st, _ := filled(t)
	var b bytes.Buffer
	if err := Parquet(context.Background(), st, &b, "flows", "v1", store.Filter{RunIDs: []int64{99}}); err != nil {
		t.Fatal(err)
	}
	if f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || f.NumRows() != 0 {
		t.Errorf("%v", err)
	}
	if err := Parquet(context.Background(), st, io.Discard, "nothing", "v1", store.Filter{}); err == nil || !strings.Contains(err.Error(), `no table "nothing"`) {
		t.Errorf("error %v", err)
	}
	if err := Parquet(context.Background(), st, broken{}, "flows", "v1", store.Filter{}); err == nil {
		t.Error("a full disk was not told")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func flent(t *testing.T) (file []byte, d flentData) {
	t.Helper()
	st, run := filled(t)
	var b bytes.Buffer
	if err := Flent(context.Background(), st, &b, run, "x.flent.gz", "v1"); err != nil {
		t.Fatal(err)
	}
	file = b.Bytes()
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return file, d
}

// 62,500 B in half a second are 1 Mb/s; the second flow has twice that, and a gap.
func TestFlent(t *testing.T) {
	_, d := flent(t)
	if d.Version != 4 || len(d.X) != 10 || d.X[9] != 5 || d.Metadata.Parameters["upload_streams"] != "2" || d.Metadata.Backend != "sim" || d.Metadata.Time != "2026-02-03T04:05:06.789000Z" {
		t.Errorf("%+v, x %v", d.Metadata, d.X)
	}
	value := func(series string, i int) float64 {
		if v := d.Results[series][i]; v != nil {
			return *v
		}
		return math.NaN()
	}
	for i := range d.X {
		gap := i >= 3 && i <= 5 // steps that end at 2 s and 2.5 s, and the one after
		if v := value("TCP upload::1", i); math.Abs(v-1) > 1e-9 {
			t.Errorf("step %d of flow 1: %v", i, v)
		}
		if v := value("TCP upload::2", i); gap != math.IsNaN(v) || !gap && math.Abs(v-2) > 1e-9 {
			t.Errorf("step %d of flow 2: %v", i, v)
		}
		sum, mean := 3.0, 1.5
		if gap {
			sum, mean = 1, 1
		}
		if math.Abs(value("TCP upload sum", i)-sum) > 1e-9 || math.Abs(value("TCP upload avg", i)-mean) > 1e-9 {
			t.Errorf("step %d: sum %v, mean %v", i, value("TCP upload sum", i), value("TCP upload avg", i))
		}
	}
	raw := d.Raw["TCP upload::1"]
	if len(raw) != 21 || raw[0].Val != nil || *raw[0].Cwnd != 10 || *raw[0].RTT != 20 || math.Abs(raw[0].T-1770091506.789001) > 1e-3 {
		t.Errorf("%d raw values, the first %+v", len(raw), raw[0])
	}
	for i := 1; i < len(raw); i++ {
		if raw[i].T < raw[i-1].T {
			t.Fatalf("raw value %d is earlier than the one before", i)
		}
	}
	if m := d.Metadata.Series["TCP upload::2"]; *m.Mean != 1 || m.CC != "cubic" || m.From != "n01" || m.Carrier != "tcp/cubic" {
		t.Errorf("%+v", m)
	}
}

func TestFlentOfNothing(t *testing.T) {
	st, _ := filled(t)
	if err := Flent(context.Background(), st, io.Discard, 99, "x", "v1"); err == nil || !strings.Contains(err.Error(), "run 99") {
		t.Errorf("error %v", err)
	}
}

// flent itself reads the file.
func TestFlentReadsIt(t *testing.T) {
	testenv.Need(t, testenv.Program("flent"))
	file, _ := flent(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.flent.gz")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("flent", "-i", path, "-f", "csv", "-p", "upload")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	_, table, _ := strings.Cut(string(out), "\n") // below what it says of itself
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) != 11 {
		t.Fatalf("%d rows, %v: %q (%s)", len(rows), err, out, stderr.String())
	}
	for k, column := range rows[0] { // in any order
		want, ok := map[string][2]string{"tcp_nup": {"0.5", "2"}, "TCP upload::1": {"1", "1"}, "TCP upload::2": {"2", ""}, "TCP upload sum": {"3", "1"}, "TCP upload avg": {"1.5", "1"}}[column]
		if !ok || rows[1][k] != want[0] || rows[4][k] != want[1] {
			t.Errorf("%s: %q and %q at 2 s, want %v", column, rows[1][k], rows[4][k], want)
		}
	}
}
