package workload

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// object is one object of a page.
type object struct {
	size  vtime.Bytes
	index int // in its page, from 0
	of    int // objects of the page
}

// pages draws the objects that a client asks for, page after page, without end.
// All of it follows from the seed, so that either end knows it.
type pages struct {
	spec    *WebSpec
	catalog *catalog
	ranks   *des.Stream
	counts  *des.Stream
	zipf    *zipf
	index   int
	of      int
}

func newPages(spec Spec) *pages {
	w := spec.Web
	return &pages{spec: w, catalog: newCatalog(spec.Seed, w.MeanSize, w.MaxSize), zipf: newZipf(w.Objects, w.Zipf),
		ranks: des.NewStream(spec.Seed, "workload/web/ranks"), counts: des.NewStream(spec.Seed, "workload/web/counts")}
}

// maxPageObjects bounds the objects of one page.
const maxPageObjects = 1000

func (p *pages) next() object {
	if p.index == p.of {
		p.index, p.of = 0, p.count()
	}
	o := object{p.catalog.size(p.zipf.rank(p.ranks)), p.index, p.of}
	p.index++
	return o
}

// count draws the number of a page's objects: geometric from 1 on, with the
// mean PageObjects.
func (p *pages) count() int {
	x := p.counts.Exp() // drawn in any case, so that later pages do not depend on the mean
	if p.spec.PageObjects == 1 {
		return 1
	}
	// P(count > n) = (1−1/mean)^n.
	n := x / -fmath.Log(1-1/p.spec.PageObjects)
	return 1 + int(min(n, maxPageObjects-1))
}

// requests is the schedule of the requests flow: all of one size.
type requests struct{ size vtime.Bytes }

func (r requests) next() (message, bool) { return message{vtime.Never, r.size}, true }

// responses is the schedule of the responses flow: a message for each object.
type responses struct{ pages *pages }

func (r responses) next() (message, bool) { return message{vtime.Never, r.pages.next().size}, true }

// browser is the user at the client: it asks for the first object of a page,
// when that is there for all others at once, and, when the page is complete, for
// the next page after a pause.
type browser struct {
	stop  vtime.Time
	pages *pages
	think *des.Stream
	mean  float64 // pause, ns

	thinking bool
	due      vtime.Time // of the next page, while thinking
	asked    int        // requests, all in all

	// The present page.
	page  int
	begun vtime.Time
	size  vtime.Bytes // of its complete objects

	// The object that comes next, and where it ends in the responses' stream.
	coming object
	until  vtime.Bytes

	done receiptQueue
}

// newBrowser begins with a pause, so that the users of one server do not all
// come at once.
func newBrowser(spec Spec, start, stop vtime.Time) *browser {
	b := &browser{stop: stop, pages: newPages(spec), think: des.NewStream(spec.Seed, "workload/web/think"), mean: float64(spec.Web.Think)}
	b.expect()
	b.pause(start)
	return b
}

func (b *browser) expect() {
	b.coming = b.pages.next()
	b.until += b.coming.size
}

func (b *browser) pause(now vtime.Time) {
	b.thinking = true
	b.due = now.Add(vtime.Duration(float64(b.mean * b.think.Exp())))
}

// next is when the browser acts by itself: Never while it waits for objects, and
// when the flow ends before the next page.
func (b *browser) next() vtime.Time {
	if !b.thinking || b.due >= b.stop {
		return vtime.Never
	}
	return b.due
}

// requested returns how many requests have been made by now.
func (b *browser) requested(now vtime.Time) int {
	if b.next() <= now {
		b.thinking, b.begun, b.size = false, b.due, 0
		b.asked++
	}
	return b.asked
}

// heard goes through the objects that are complete when the first total bytes of
// the responses are there.
func (b *browser) heard(now vtime.Time, total vtime.Bytes) {
	b.requested(now)
	for !b.thinking && total >= b.until {
		o := b.coming
		b.size += o.size
		if o.index == 0 {
			b.asked += o.of - 1
		}
		if o.index == o.of-1 {
			b.done.add(Receipt{Message: b.page, Size: b.size, Ready: b.begun, Delay: now.Sub(b.begun)})
			b.page++
			b.pause(now)
		}
		b.expect()
	}
}

// close gives the present page up. Its size is that of the whole page, which is
// known though not all of it came.
func (b *browser) close(end vtime.Time) {
	if b.requested(end - 1); b.thinking {
		return
	}
	for {
		b.size += b.coming.size
		last := b.coming.index == b.coming.of-1
		b.expect()
		if last {
			break
		}
	}
	b.done.add(Receipt{Message: b.page, Size: b.size, Ready: b.begun, Lost: true})
	b.thinking, b.due = true, vtime.Never
}
