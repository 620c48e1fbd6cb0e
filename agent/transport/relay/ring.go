package relay

import "sync"

// ring is the bounded buffer of one flow between one reader and one writer.
// Space and Data hand out parts of it that only the caller uses until Filled or
// Taken.
type ring struct {
	mu       sync.Mutex
	changed  sync.Cond
	buf      []byte
	at, held int // the oldest byte and their number
	most     int
	eof      bool  // nothing more will come
	err      error // why one side gave up
}

func newRing(size int) *ring {
	r := &ring{buf: make([]byte, size)}
	r.changed.L = &r.mu
	return r
}

// space waits for room and returns a part of it; the error is the one given to
// fail.
func (r *ring) space() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.held == len(r.buf) && r.err == nil {
		r.changed.Wait()
	}
	if r.err != nil {
		return nil, r.err
	}
	from := (r.at + r.held) % len(r.buf)
	to := len(r.buf)
	if from < r.at {
		to = r.at
	}
	return r.buf[from:to], nil
}

// filled adds the first n bytes of what space returned.
func (r *ring) filled(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held += n
	r.most = max(r.most, r.held)
	r.changed.Broadcast()
}

// end says that nothing more will come.
func (r *ring) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eof = true
	r.changed.Broadcast()
}

// data waits for bytes and returns some, at most limit; ok is false at the end
// of the stream.
func (r *ring) data(limit int) (b []byte, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.held == 0 && !r.eof && r.err == nil {
		r.changed.Wait()
	}
	switch {
	case r.err != nil:
		return nil, false, r.err
	case r.held == 0:
		return nil, false, nil
	}
	n := min(r.held, len(r.buf)-r.at, limit)
	return r.buf[r.at : r.at+n], true, nil
}

// taken removes the first n bytes of what data returned.
func (r *ring) taken(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = (r.at + n) % len(r.buf)
	r.held -= n
	r.changed.Broadcast()
}

// fail ends both sides' waits with the first error given, and returns that.
func (r *ring) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.changed.Broadcast()
	return r.err
}

// level returns how many bytes are held, and the most there ever were.
func (r *ring) level() (held, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.most
}
