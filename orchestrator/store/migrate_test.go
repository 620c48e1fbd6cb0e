package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// oldDatabase unpacks a database that an earlier hopbed wrote.
func oldDatabase(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(g)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".db")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A database of format 1 is read as it is, and brought up to date by a writer:
// what it holds is as it was, what it could not hold is missing, and new results
// fit.
func TestFormat1IsMigrated(t *testing.T) {
	ctx := context.Background()
	path := oldDatabase(t, "format1")
	if v, err := inspect(ctx, path, path); err != nil || v != 1 {
		t.Fatalf("the file has format %d, %v: it tests nothing", v, err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenRead(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.LatestCampaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "two" || c.Seed != 1<<64-1 || c.Status != CampaignComplete || c.Batch.OK {
		t.Errorf("campaign %+v", c)
	}
	runs, err := r.Runs(ctx, Filter{ValidOnly: true})
	if err != nil || len(runs) != 2 || runs[1].Repetition != 2 || runs[0].LatenessP99Us != Some(120.5) || runs[0].Params["loss"] != "20%" {
		t.Errorf("runs %+v, %v", runs, err)
	}
	nodes, err := r.Nodes(ctx, Filter{})
	if err != nil || len(nodes) != 4 || nodes[0].Wired || nodes[0].Bridge || nodes[0].YM != Some(1.5) {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	pipes, err := r.Pipes(ctx, Filter{})
	if err != nil || len(pipes) != 0 {
		t.Errorf("pipes %+v, %v", pipes, err)
	}
	flows, err := r.Flows(ctx, Filter{})
	if err != nil || len(flows) != 2 || flows[0].Role != "" || flows[0].Peer.OK || flows[0].Messages.OK || flows[0].MOS.OK {
		t.Errorf("flows %+v, %v", flows, err)
	}
	if err := r.Messages(ctx, runs[0].ID, func(m *Message) error { return fmt.Errorf("%+v", m) }); err != nil {
		t.Errorf("messages: %v", err)
	}
	samples := 0
	if err := r.Samples(ctx, runs[0].ID, func(*Sample) error { samples++; return nil }); err != nil || samples != 5 {
		t.Errorf("%d samples, %v", samples, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("reading changed the file, %v", err)
	}
	if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
		t.Errorf("reading left %v, %v", left, err)
	}
	w := open(t, path)
	if from, to, ok := w.Migrated(); !ok || from != 1 || to != formatVersion() {
		t.Errorf("migrated: %d to %d, %v", from, to, ok)
	}
	if err := w.SaveRun(ctx, record(c.ID, 3, 5)); err != nil {
		t.Fatal(err)
	}
	if n := counts(t, w); n["runs"] != 3 || n["pipes"] != 2 {
		t.Errorf("rows: %v", n)
	}
	integrity(t, w)
}

// A database of format 2 becomes one of format 3; what it holds is as it was.
func TestFormat2IsMigrated(t *testing.T) {
	ctx := context.Background()
	path := oldDatabase(t, "format2")
	if v, err := inspect(ctx, path, path); err != nil || v != 2 {
		t.Fatalf("the file has format %d, %v: it tests nothing", v, err)
	}
	r, err := OpenRead(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	type content struct {
		Campaigns []Campaign
		Runs      []Run
		Flows     []Flow
		Pipes     []Pipe
		Samples   []Sample
	}
	read := func(s *Store) (c content) {
		t.Helper()
		var errs [5]error
		c.Campaigns, errs[0] = s.Campaigns(ctx)
		c.Runs, errs[1] = s.Runs(ctx, Filter{})
		c.Flows, errs[2] = s.Flows(ctx, Filter{})
		c.Pipes, errs[3] = s.Pipes(ctx, Filter{})
		errs[4] = s.Samples(ctx, 1, func(smp *Sample) error { c.Samples = append(c.Samples, *smp); return nil })
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read(r)
	if n := len(before.Flows); n != 2 || len(before.Samples) != 5 || len(before.Pipes) != 4 || !before.Campaigns[1].Batch.OK || before.Flows[0].Counters["vbsyn"] != 2 || before.Flows[0].Messages.OK {
		t.Errorf("read as it is: %+v", before)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w := open(t, path)
	if from, to, ok := w.Migrated(); !ok || from != 2 || to != formatVersion() {
		t.Errorf("migrated: %d to %d, %v", from, to, ok)
	}
	if after := read(w); !reflect.DeepEqual(after, before) {
		t.Errorf("after the migration\n%+v\nbefore\n%+v", after, before)
	}
	if err := w.SaveRun(ctx, record(1, 3, 5)); err != nil {
		t.Fatal(err)
	}
	if n := counts(t, w); n["runs"] != 3 || n["messages"] != 2 {
		t.Errorf("rows: %v", n)
	}
	integrity(t, w)
}

// An old database that cannot be written can be read all the same.
func TestOldAndReadOnly(t *testing.T) {
	path := oldDatabase(t, "format1")
	if err := os.Mkdir(lockPath(path), 0o755); err != nil { // rights do not stop root: this stops a writer
		t.Fatal(err)
	}
	if w, err := Open(context.Background(), path); err == nil {
		w.Close()
		t.Fatal("it was opened for writing")
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(filepath.Dir(path), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
	}
	r, err := OpenRead(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Nodes(context.Background(), Filter{}); err != nil || len(n) != 4 {
		t.Errorf("nodes %+v, %v", n, err)
	}
}

// Over a file of every older format lies what makes each table look as in the
// newest one, in every connection of the pool, and none of them can write.
func TestOlderFormatsLookLikeTheNewest(t *testing.T) {
	ctx := context.Background()
	newest := columns(t, temp(t).r)
	for format := 1; format < formatVersion(); format++ {
		path := oldDatabase(t, fmt.Sprintf("format%d", format))
		r, err := OpenRead(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for range 3 {
			c, err := r.r.Connx(ctx) // held, so that the next is another
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := columns(t, c); !reflect.DeepEqual(got, newest) {
				t.Errorf("format %d has %v, want %v", format, got, newest)
			}
			if _, err := c.ExecContext(ctx, "DELETE FROM main.runs"); err == nil {
				t.Errorf("format %d can be written through a reader", format)
			}
		}
		for _, table := range ExportTables() {
			if err := r.Export(ctx, io.Discard, table, FormatCSV, Filter{}); err != nil {
				t.Errorf("format %d: %v", format, err)
			}
		}
	}
}

// columns are the names of each table's columns, sorted.
func columns(t *testing.T, q sqlx.QueryerContext) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range ExportTables() {
		rows, err := q.QueryContext(context.Background(), "SELECT * FROM "+table+" LIMIT 0")
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		if err := errors.Join(err, rows.Close()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		out[table] = names
	}
	return out
}

// A file that Open makes, or finds in the newest format, was not migrated.
func TestNewFileIsNotMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	for range 2 {
		s, err := Open(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		if from, to, ok := s.Migrated(); ok {
			t.Errorf("migrated: %d to %d", from, to)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An empty file holds nothing to read, and stays empty.
func TestReadingAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRead(context.Background(), path); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// The campaigns of one command are found from each of them.
func TestBatch(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	a, alone, b := campaign(t, s), campaign(t, s), campaign(t, s)
	if err := s.JoinCampaigns(ctx, a.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   int64
		want []int64
	}{{a.ID, []int64{a.ID, b.ID}}, {b.ID, []int64{a.ID, b.ID}}, {alone.ID, []int64{alone.ID}}} {
		got, err := s.Batch(ctx, c.id)
		compare(t, "batch", c.want)(got, err)
	}
	if err := s.JoinCampaigns(ctx, a.ID, 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("a campaign that is not there was joined: %v", err)
	}
	if got, _ := s.Batch(ctx, a.ID); len(got) != 2 {
		t.Errorf("a failed join left %v", got)
	}
}

// The round-trip time is the source's, of the measured interval only; frames
// are those of every node that a flow made send.
func TestWhatSourcesAndSendersSay(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c := campaign(t, s)
	rec := record(c.ID, 1, 0)
	at := func(side string, node int, seconds float64, fill func(*Sample)) {
		smp := Sample{Side: side, Node: node, TUs: int64(seconds * 1e6)}
		fill(&smp)
		rec.Samples = append(rec.Samples, smp)
	}
	rtt := func(us int64) func(*Sample) { return func(s *Sample) { s.SRTTUs = Some(us) } }
	frames := func(n int64) func(*Sample) { return func(s *Sample) { s.DataFrames = Some(n) } }
	at(SideSrc, 0, 1, rtt(900_000)) // the warm-up is 5 s long
	at(SideSrc, 0, 5, rtt(10_000))
	at(SideSrc, 0, 20, rtt(20_000))
	at(SideSrc, 0, 36, rtt(900_000)) // after the end
	at(SideDst, 1, 6, rtt(900_000))
	at(SideSrc, 0, 21, frames(40))
	at(SideSrc, 0, 22, frames(60))
	at(SideRelay, 1, 21, frames(5))
	if err := s.SaveRun(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if got, err := s.SourceRTTs(ctx, &rec.Run); err != nil || len(got) != 1 || got[0] != 15_000 {
		t.Errorf("round-trip times %v, %v", got, err)
	}
	if got, err := s.DataFrames(ctx, rec.Run.ID); err != nil || len(got) != 1 || got[0] != 65 {
		t.Errorf("frames %v, %v", got, err)
	}
}
