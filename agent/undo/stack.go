package undo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Keeper remembers records beyond the process that has the stack: the guardian,
// the journal. The stack calls it for one record at a time.
type Keeper interface {
	// Push is told a record before its change is made. After an error the change
	// is not made, unless another keeper has the record.
	Push(id uint64, r Record) error
	// Done is told that a record was carried out.
	Done(id uint64) error
}

// Failure is a record that could not be carried out.
type Failure struct {
	Record Record
	Err    error
}

// Error says what could not be put back, and why.
func (f *Failure) Error() string { return f.Record.What + ": " + f.Err.Error() }

// Unwrap returns why.
func (f *Failure) Unwrap() error { return f.Err }

// Stack holds what must be put back, in the order in which it was changed. Its
// methods may be called from several goroutines.
type Stack struct {
	table   Table
	keepers []Keeper
	warn    func(error)

	mu    sync.Mutex
	items []item
	last  uint64
}

type item struct {
	id     uint64
	record Record
}

// NewStack returns an empty stack. A change is made when at least one of the
// keepers has its record (with none, the stack alone has it); warn hears of the
// others' errors, once each. It may be nil without keepers.
func NewStack(t Table, warn func(error), keepers ...Keeper) *Stack {
	return &Stack{table: t, keepers: keepers, warn: warn}
}

// Push takes a record before its change is made. After an error the change must
// not be made. It is a Push.
func (s *Stack) Push(r Record) error {
	if _, ok := s.table[r.Kind]; !ok {
		return fmt.Errorf("undo: nobody undoes a %q (%s)", r.Kind, r.What)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	var errs []error
	left := s.keepers[:0:0]
	for _, k := range s.keepers {
		if err := k.Push(s.last, r); err != nil {
			errs = append(errs, err)
			continue
		}
		left = append(left, k)
	}
	if len(errs) > 0 && len(left) == 0 {
		return fmt.Errorf("%s is not changed, because nobody would put it back if the agent were killed: %w", r.What, errors.Join(errs...))
	}
	for _, err := range errs {
		s.warn(err)
	}
	s.keepers = left
	s.items = append(s.items, item{s.last, r})
	return nil
}

// Len is the number of records.
func (s *Stack) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Revert carries every record out, newest first, and returns what was done. One
// that fails does not keep the others from being undone; it stays, for the next
// Revert and for those who outlive the stack.
func (s *Stack) Revert(ctx context.Context) (undone []string, failed []*Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []item
	for i := len(s.items) - 1; i >= 0; i-- {
		it := s.items[i]
		if err := s.table.run(ctx, it.record); err != nil {
			failed = append(failed, &Failure{it.record, err})
			left = append([]item{it}, left...)
			continue
		}
		undone = append(undone, it.record.What)
		for _, k := range s.keepers {
			// A record that is carried out once more does no harm.
			_ = k.Done(it.id)
		}
	}
	s.items = left
	return undone, failed
}
