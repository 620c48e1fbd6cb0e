//go:build linux

package session

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// errAbandoned is what a write to an abandoned outlet returns.
var errAbandoned = errors.New("the controller does not read")

// patience is how long one write may take once the controller is gone or silent.
// Who does not read the last words must not hold up the revert.
const patience = 500 * time.Millisecond

// outlet is a stream that can be given up while somebody writes to it: an SSH
// channel over a network that was cut takes nothing for minutes. Its Write is for
// one caller at a time.
type outlet struct {
	work               chan []byte
	result             chan error
	hurried, abandoned chan struct{}
	hurryOnce, endOnce sync.Once
}

func newOutlet(w io.Writer) *outlet {
	o := &outlet{work: make(chan []byte), result: make(chan error, 1), hurried: make(chan struct{}), abandoned: make(chan struct{})}
	go func() {
		for {
			select {
			case b := <-o.work:
				_, err := w.Write(b)
				o.result <- err
			case <-o.abandoned:
				return
			}
		}
	}()
	return o
}

// Write returns when b is written, or when it took too long in a hurry, after
// which all writes fail.
func (o *outlet) Write(b []byte) (int, error) {
	select {
	case <-o.abandoned:
		return 0, errAbandoned
	default:
	}
	select {
	case o.work <- bytes.Clone(b): // the write may go on after we have given up
	case <-o.abandoned:
		return 0, errAbandoned
	}
	hurried := o.hurried
	var late <-chan time.Time
	for {
		select {
		case err := <-o.result:
			if err != nil {
				return 0, err
			}
			return len(b), nil
		case <-hurried:
			hurried, late = nil, time.After(patience)
		case <-late:
			o.abandon()
			return 0, errAbandoned
		case <-o.abandoned:
			return 0, errAbandoned
		}
	}
}

// hurry bounds every write from now on, the present one included.
func (o *outlet) hurry() { o.hurryOnce.Do(func() { close(o.hurried) }) }

// abandon makes every write fail from now on, the present one included.
func (o *outlet) abandon() { o.endOnce.Do(func() { close(o.abandoned) }) }
