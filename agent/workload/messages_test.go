package workload

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

const ms = vtime.Time(vtime.Millisecond)

func webSpec(role Role, change func(*WebSpec)) Spec {
	w := &WebSpec{Objects: 1000, Zipf: 1, MeanSize: 20_000, MaxSize: 1_000_000, PageObjects: 2.7, Think: 3 * vtime.Second, Request: 350}
	if change != nil {
		change(w)
	}
	return Spec{Kind: Web, Seed: 5, Role: role, Web: w}
}

// traced is a trace of messages of 100, 50, 200 and 10 bytes at 10, 20, 20 and
// 40 ms.
func traced() Spec {
	return Spec{Kind: Trace, Transfers: []Transfer{{10 * vtime.Millisecond, 100}, {20 * vtime.Millisecond, 50}, {20 * vtime.Millisecond, 200}, {40 * vtime.Millisecond, 10}}}
}

func source(t *testing.T, spec Spec, start, stop vtime.Time) *Source {
	t.Helper()
	s, err := NewSource(spec, start, stop)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receipts(t *testing.T, spec Spec, start, stop vtime.Time) *Receipts {
	t.Helper()
	r, err := NewReceipts(spec, start, stop)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSourceOfMessages(t *testing.T) {
	s := source(t, traced(), 0, 100*ms)
	check := func(now vtime.Time, ready, piece vtime.Bytes, next vtime.Time) {
		t.Helper()
		if s.Ready(now) != ready || s.Piece(now) != piece || s.Next(now) != next {
			t.Errorf("at %v: ready %v, piece %v, next %v; want %v, %v, %v", now, s.Ready(now), s.Piece(now), s.Next(now), ready, piece, next)
		}
	}
	at := func(k int, offset, size vtime.Bytes) {
		t.Helper()
		if gk, go_, gs := s.Message(); gk != k || go_ != offset || gs != size {
			t.Errorf("at byte %v of message %d (%v), want %v of %d (%v)", go_, gk, gs, offset, k, size)
		}
	}
	check(0, 0, 0, 10*ms)
	check(10*ms-1, 0, 0, 10*ms)
	check(10*ms, 100, 100, 20*ms)
	s.Take(10*ms, 30)
	at(0, 30, 100)
	check(10*ms, 70, 70, 20*ms)
	check(20*ms, 320, 70, 40*ms)
	s.Take(20*ms, 90) // across the end of message 0, as a stream does
	at(1, 20, 50)
	check(21*ms, 230, 30, 40*ms)
	s.Take(21*ms, 30)
	at(2, 0, 200)
	check(50*ms, 210, 200, vtime.Never)
	s.Take(50*ms, 200)
	if s.Finished() {
		t.Error("finished with a message to come")
	}
	s.Take(50*ms, 10)
	check(60*ms, 0, 0, vtime.Never)
	if !s.Finished() || s.Taken() != 360 {
		t.Errorf("finished %v, taken %v", s.Finished(), s.Taken())
	}
	s.Rewind()
	check(60*ms, 360, 100, vtime.Never)
	at(0, 0, 100)
}

// A source ends when nothing more becomes ready before its stop.
func TestSourceEndsBeforeItsStop(t *testing.T) {
	s := source(t, traced(), 0, 20*ms)
	s.Take(15*ms, 100)
	if !s.Finished() || s.Next(15*ms) != vtime.Never || s.Ready(90*ms) != 0 {
		t.Errorf("finished %v, next %v, ready %v", s.Finished(), s.Next(15*ms), s.Ready(90*ms))
	}
}

func TestReceiptsOfAStream(t *testing.T) {
	r := receipts(t, traced(), 0, 100*ms)
	r.Add(12*ms, 99)
	if got := slices.Collect(r.Take()); len(got) != 0 {
		t.Errorf("receipts of a part: %+v", got)
	}
	r.Add(13*ms, 1)
	r.Add(30*ms, 260) // the ends of messages 1 and 2 and all of 3, which is to come at 40 ms: the clocks differ
	want := []Receipt{
		{Message: 0, Size: 100, Ready: 10 * ms, Delay: 3 * vtime.Millisecond},
		{Message: 1, Size: 50, Ready: 20 * ms, Delay: 10 * vtime.Millisecond},
		{Message: 2, Size: 200, Ready: 20 * ms, Delay: 10 * vtime.Millisecond},
		{Message: 3, Size: 10, Ready: 40 * ms, Delay: -10 * vtime.Millisecond},
	}
	if got := slices.Collect(r.Take()); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if r.Close(100 * ms); !r.Complete() || len(slices.Collect(r.Take())) != 0 || r.Prefix() != 360 {
		t.Errorf("complete %v, prefix %v", r.Complete(), r.Prefix())
	}
}

// What was ready before the end and is not there is lost; a consumer that stops
// finds the rest later.
func TestReceiptsAtTheEnd(t *testing.T) {
	r := receipts(t, traced(), 0, 100*ms)
	r.Add(15*ms, 120)
	r.Close(40 * ms)
	var got []Receipt
	for range 5 {
		for m := range r.Take() {
			got = append(got, m)
			break
		}
	}
	want := []Receipt{{Message: 0, Size: 100, Ready: 10 * ms, Delay: 5 * vtime.Millisecond},
		{Message: 1, Size: 50, Ready: 20 * ms, Lost: true}, {Message: 2, Size: 200, Ready: 20 * ms, Lost: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestReceiptsOutOfOrder(t *testing.T) {
	r := receipts(t, traced(), 0, 100*ms)
	steps := []struct {
		now    vtime.Time
		k      int
		n      vtime.Bytes // 0: all of it
		ok     bool
		prefix vtime.Bytes
	}{
		{25 * ms, 2, 150, true, 0},
		{26 * ms, 2, 51, false, 0}, // more than is missing
		{27 * ms, 0, 0, true, 100},
		{28 * ms, 0, 0, false, 100}, // again
		{29 * ms, 2, 50, true, 100},
		{30 * ms, 2, 1, false, 100},
		{31 * ms, 4, 0, false, 100}, // there is no such message
		{32 * ms, -1, 0, false, 100},
		{50 * ms, 1, 0, true, 350},
	}
	for _, s := range steps {
		add := func() bool { return r.AddPart(s.now, s.k, s.n) }
		if s.n == 0 {
			add = func() bool { return r.AddMessage(s.now, s.k) }
		}
		if ok := add(); ok != s.ok || r.Prefix() != s.prefix {
			t.Errorf("%+v: ok %v, prefix %v", s, ok, r.Prefix())
		}
	}
	want := []Receipt{{Message: 0, Size: 100, Ready: 10 * ms, Delay: 17 * vtime.Millisecond},
		{Message: 2, Size: 200, Ready: 20 * ms, Delay: 9 * vtime.Millisecond}, {Message: 1, Size: 50, Ready: 20 * ms, Delay: 30 * vtime.Millisecond},
		{Message: 3, Size: 10, Ready: 40 * ms, Lost: true}}
	r.Close(60 * ms)
	if got := slices.Collect(r.Take()); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A forged number must neither be believed nor make the receiver run through a
// schedule of years.
func TestReceiptsRefuseWhatCannotHaveBeenSent(t *testing.T) {
	year := vtime.Time(365 * 24 * vtime.Hour)
	for _, spec := range []Spec{{Kind: VoIP, Codec: "g729"}, {Kind: Poisson, Size: 1, Interval: vtime.Millisecond}, webSpec(Responses, nil)} {
		r := receipts(t, spec, 0, year)
		if r.AddMessage(vtime.Time(vtime.Second), 1<<40) {
			t.Errorf("%s: message 2^40 after a second", spec.Kind)
		}
		r.Blocks(1400)
		if _, _, _, ok := r.Block(vtime.Time(vtime.Second), 1<<40); ok {
			t.Errorf("%s: block 2^40 after a second", spec.Kind)
		}
		if len(r.missing) > maxMissing {
			t.Errorf("%s: %d messages are remembered", spec.Kind, len(r.missing))
		}
		if !r.AddMessage(vtime.Time(vtime.Second), 0) {
			t.Errorf("%s: message 0 is refused thereafter", spec.Kind)
		}
	}
}

// What is missing is bounded: the oldest is given up.
func TestReceiptsForgetTheOldest(t *testing.T) {
	spec := Spec{Kind: VoIP, Codec: "g729"}
	r := receipts(t, spec, 0, vtime.Never)
	hour := vtime.Time(vtime.Hour)
	if !r.AddMessage(hour, maxMissing+9) {
		t.Fatal("refused")
	}
	got := slices.Collect(r.Take())
	if len(got) != 11 || !got[0].Lost || got[0].Message != 0 || got[9].Message != 9 || got[10].Lost || got[10].Message != maxMissing+9 {
		t.Errorf("%+v", got)
	}
	if r.AddMessage(hour, 3) {
		t.Error("a message that was given up is counted")
	}
}

// Blocks are cut as Source.Piece says.
func TestBlocksOfMessages(t *testing.T) {
	const block = 64
	rnd := rand.New(rand.NewSource(4))
	for _, spec := range []Spec{traced(), {Kind: Poisson, Size: 150, Interval: vtime.Millisecond, Sizes: SizesExponential, Seed: 2}} {
		s, r := source(t, spec, 0, 50*ms), receipts(t, spec, 0, 50*ms)
		r.Blocks(block)
		type cut struct {
			k     int
			at, n vtime.Bytes
		}
		var cuts []cut
		for !s.Finished() {
			n := min(block, s.Piece(50*ms))
			k, _, _ := s.Message()
			cuts = append(cuts, cut{k, s.Taken(), n})
			s.Take(50*ms, n)
		}
		if spec.Kind == Trace && len(cuts) != 2+1+4+1 {
			t.Errorf("%d blocks: %+v", len(cuts), cuts)
		}
		for _, b := range rnd.Perm(len(cuts)) {
			k, at, n, ok := r.Block(60*ms, b)
			if !ok || (cut{k, at, n}) != cuts[b] {
				t.Fatalf("block %d is %+v, ok %v; want %+v", b, cut{k, at, n}, ok, cuts[b])
			}
			if !r.AddPart(60*ms, k, n) {
				t.Fatalf("block %d is refused", b)
			}
		}
		if !r.Complete() || r.Prefix() != s.Taken() {
			t.Errorf("complete %v, prefix %v of %v", r.Complete(), r.Prefix(), s.Taken())
		}
		if _, _, _, ok := r.Block(60*ms, 0); ok {
			t.Error("a block that was there has a place")
		}
	}
}

// Schedules of a week make nothing but the messages that are asked for.
func TestLongSchedulesCostNothing(t *testing.T) {
	week := vtime.Time(7 * 24 * vtime.Hour)
	n := testing.AllocsPerRun(5, func() {
		s, r := source(t, Spec{Kind: VoIP, Codec: "g729"}, 0, week), receipts(t, Spec{Kind: VoIP, Codec: "g729"}, 0, week)
		hour := vtime.Time(vtime.Hour)
		s.Take(hour, s.Ready(hour))
		r.Add(hour, s.Taken()-32*50)
	})
	if n > 60 { // the receipts' slice grows
		t.Errorf("%v allocations for an hour of packets", n)
	}
}

// A page by hand: one object, then all others at once, then a pause.
func TestWebExchange(t *testing.T) {
	spec := webSpec(Requests, func(w *WebSpec) { w.PageObjects = 3 })
	client, server := source(t, spec, 0, vtime.Never), source(t, webSpec(Responses, func(w *WebSpec) { w.PageObjects = 3 }), 0, vtime.Never)
	objects := newPages(spec)
	const request = 350
	var asked, sent vtime.Bytes // what the server heard, what the client heard
	now := vtime.Time(0)
	for page := range 50 {
		o := objects.next()
		due := client.Next(now)
		if due <= now || due == vtime.Never || client.Ready(due-1) != 0 {
			t.Fatalf("page %d: at %v the next page is due at %v, %v ready before", page, now, due, client.Ready(due-1))
		}
		// One request for the page's first object; it arrives in two parts.
		if client.Ready(due) != request || client.Piece(due) != request || client.Next(due) != vtime.Never {
			t.Fatalf("page %d: %v ready, next %v", page, client.Ready(due), client.Next(due))
		}
		client.Take(due, request)
		server.Heard(due, asked+request-1)
		if server.Ready(due) != 0 {
			t.Fatalf("page %d: the server answers a part of a request", page)
		}
		asked += request
		now = due + 5*ms
		server.Heard(now, asked)
		if server.Ready(now) != o.size || server.Piece(now) != o.size || server.Next(now) != vtime.Never {
			t.Fatalf("page %d: the server has %v ready, the object has %v", page, server.Ready(now), o.size)
		}
		server.Take(now, o.size)
		sent += o.size
		client.Heard(now, sent-1)
		if client.Ready(now) != 0 {
			t.Fatalf("page %d: more is asked for before the first object is complete", page)
		}
		now += 7 * ms
		client.Heard(now, sent)
		size, rest := o.size, vtime.Bytes(0)
		if want := vtime.Bytes(o.of-1) * request; client.Ready(now) != want {
			t.Fatalf("page %d of %d objects: %v of requests follow, want %v", page, o.of, client.Ready(now), want)
		}
		if o.of > 1 {
			for range o.of - 1 {
				rest += objects.next().size
			}
			client.Take(now, client.Ready(now))
			asked += vtime.Bytes(o.of-1) * request
			server.Heard(now, asked)
			if server.Ready(now) != rest {
				t.Fatalf("page %d: %v ready, want %v", page, server.Ready(now), rest)
			}
			server.Take(now, rest)
			sent, size = sent+rest, size+rest
			now += 11 * ms
			client.Heard(now, sent)
		}
		want := []Receipt{{Message: page, Size: size, Ready: due, Delay: now.Sub(due)}}
		if got := slices.Collect(client.Receipts()); !slices.Equal(got, want) {
			t.Fatalf("page %d: %+v, want %+v", page, got, want)
		}
	}
	if client.Finished() || server.Finished() {
		t.Error("a web source ends")
	}
	// The run ends within a page: it is lost, with the size of the whole page.
	due := client.Next(now)
	client.Ready(due)
	client.Close(due + 1)
	client.Close(due + 2)
	got := slices.Collect(client.Receipts())
	if o := objects.next(); len(got) != 1 || !got[0].Lost || got[0].Message != 50 || got[0].Ready != due || got[0].Size < o.size {
		t.Errorf("%+v", got)
	}
	if len(slices.Collect(server.Receipts())) != 0 {
		t.Error("the server has receipts")
	}
}

// No page begins at or after the stop, and one that would begin after the end of
// the run is not lost.
func TestWebStops(t *testing.T) {
	c := source(t, webSpec(Requests, nil), 0, vtime.Never)
	due := c.Next(0)
	stopped := source(t, webSpec(Requests, nil), 0, due)
	if stopped.Next(0) != vtime.Never || stopped.Ready(due+5) != 0 {
		t.Error("a page begins at the stop")
	}
	stopped.Close(due)
	c.Close(due)
	if n := len(slices.Collect(stopped.Receipts())) + len(slices.Collect(c.Receipts())); n != 0 {
		t.Errorf("%d pages are lost that did not begin", n)
	}
}

// The account of a web flow has no receipts, but it knows what is in order.
func TestReceiptsOfWebFlows(t *testing.T) {
	r := receipts(t, webSpec(Requests, nil), 0, vtime.Never)
	r.AddMessage(1, 1)
	if r.Prefix() != 0 {
		t.Errorf("prefix %v without the first request", r.Prefix())
	}
	r.AddMessage(2, 0)
	if r.Prefix() != 700 || r.Complete() {
		t.Errorf("prefix %v, complete %v", r.Prefix(), r.Complete())
	}
	r.Close(100)
	if got := slices.Collect(r.Take()); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
