package store

import (
	"context"
	"reflect"
	"testing"
	"time"
)

func survey(campaign int64, network string) *Survey {
	return &Survey{
		CampaignID: campaign, Network: network, Repetition: 1, Params: Params{"spacing": "20m"}, Started: StampOf(time.Unix(1_700_000_000, 0)),
		Nodes: Strings{"a", "b", "c", "w"}, Mute: Path{3}, Probes: 10, PeriodS: 1, Size: 134, Rate: 2_000_000,
		Links: []SurveyLink{{Src: 0, Dst: 1, Received: 8, Lost: LostOf([]int{3, 4})}, {Src: 0, Dst: 2, Received: 1}, {Src: 1, Dst: 0, Received: 10, Lost: LostOf([]int{})}},
	}
}

// What was measured before a campaign comes back as it was.
func TestSurveysAreKept(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c, other := campaign(t, s), campaign(t, s)
	first, second := survey(c.ID, "n1"), survey(c.ID, "n2")
	second.Links = nil // nobody heard anybody
	for _, v := range []*Survey{first, second, survey(other.ID, "n1")} {
		if err := s.SaveSurvey(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Surveys(ctx, c.ID)
	if err != nil || len(got) != 2 || got[0].Survey != 1 || got[1].Survey != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !reflect.DeepEqual(got[0], *first) || !reflect.DeepEqual(got[1].Nodes, second.Nodes) || got[1].Links != nil {
		t.Errorf("got %+v\nwant %+v", got[0], *first)
	}
	for i, want := range [][]int{{3, 4}, nil, {}} {
		if lost, err := got[0].Links[i].LostProbes(); err != nil || !reflect.DeepEqual(lost, want) {
			t.Errorf("link %d: %v, %v, want %v", i, lost, err, want)
		}
	}
	// A network is measured once in a campaign, and nothing of a survey that cannot
	// be kept stays.
	again := survey(c.ID, "n1")
	loop := survey(c.ID, "n3")
	loop.Links[0].Dst = 0
	for _, v := range []*Survey{again, loop, survey(99, "n1")} {
		if err := s.SaveSurvey(ctx, v); err == nil {
			t.Errorf("%+v was kept", v)
		}
	}
	if got, err := s.Surveys(ctx, c.ID); err != nil || len(got) != 2 {
		t.Errorf("%d surveys, %v", len(got), err)
	}
}

// A database of format 3 becomes one of format 4; what it holds is as it was.
func TestFormat3IsMigrated(t *testing.T) {
	ctx := context.Background()
	path := oldDatabase(t, "format3")
	if v, err := inspect(ctx, path, path); err != nil || v != 3 {
		t.Fatalf("the file has format %d, %v: it tests nothing", v, err)
	}
	r, err := OpenRead(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	before, err := r.Runs(ctx, Filter{})
	if err != nil || len(before) != 4 {
		t.Fatalf("%d runs, %v", len(before), err)
	}
	if v, err := r.Surveys(ctx, 1); err != nil || v != nil {
		t.Errorf("surveys %+v, %v", v, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w := open(t, path)
	if from, to, ok := w.Migrated(); !ok || from != 3 || to != formatVersion() {
		t.Errorf("migrated: %d to %d, %v", from, to, ok)
	}
	if after, err := w.Runs(ctx, Filter{}); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%v: after the migration\n%+v\nbefore\n%+v", err, after, before)
	}
	if err := w.SaveSurvey(ctx, survey(1, "n1")); err != nil {
		t.Error(err)
	}
	if n := counts(t, w); n["messages"] != 800 || n["flows"] != 12 {
		t.Errorf("rows: %v", n)
	}
	integrity(t, w)
}
