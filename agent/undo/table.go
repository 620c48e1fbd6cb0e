package undo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Func takes one change back. It may be called when the change was never made,
// or was taken back before; then, and when what was changed is gone, it has
// nothing to do and returns nil. It obeys ctx where it can.
type Func func(ctx context.Context, data json.RawMessage) error

// Table says how each kind of change is taken back.
type Table map[string]Func

// On makes a Func of one that takes its kind's own type. Data that is not
// exactly that is an error.
func On[T any](f func(ctx context.Context, v T) error) Func {
	return func(ctx context.Context, data json.RawMessage) error {
		var v T
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("the record cannot be read: %w", err)
		}
		return f(ctx, v)
	}
}

// Of makes a Func of a type of data that undoes itself.
func Of[T interface {
	Undo(ctx context.Context) error
}]() Func {
	return On(func(ctx context.Context, v T) error { return v.Undo(ctx) })
}

// within bounds the undoing of one change: a tool that hangs must not keep the
// others from being undone.
const within = 10 * time.Second

// run carries out one record.
func (t Table) run(ctx context.Context, r Record) error {
	f, ok := t[r.Kind]
	if !ok {
		return fmt.Errorf("nobody here undoes a %q (known: %s): another version of the agent wrote it", r.Kind, strings.Join(slices.Sorted(maps.Keys(t)), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx, r.Data) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// A call into a driver that hangs does not know of ctx.
		select {
		case err := <-done:
			return err
		case <-time.After(time.Second):
			return context.Cause(ctx)
		}
	}
}

// goneText is how the tools say that the interface is gone (strerror of ENODEV,
// which LC_ALL=C leaves in English).
const goneText = "No such device"

// RunCommand is the Func of KindCommand. It runs the program without a shell, in
// this process's environment but for the language.
func RunCommand(ctx context.Context, data json.RawMessage) error {
	return On(func(ctx context.Context, argv []string) error {
		if len(argv) == 0 || argv[0] == "" {
			return errors.New("the record names no program")
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.WaitDelay = time.Second
		said := &head{left: 4 << 10}
		cmd.Stdout, cmd.Stderr = said, said
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // a daemon that it started keeps its output open
		}
		switch text := strings.TrimSpace(said.String()); {
		case err == nil, strings.Contains(text, goneText):
			return nil
		case text != "":
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, text)
		}
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	})(ctx, data)
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	left int
}

// Write keeps what there is room for, and takes everything.
func (h *head) Write(b []byte) (int, error) {
	n := min(h.left, len(b))
	h.left -= n
	_, _ = h.Buffer.Write(b[:n])
	return len(b), nil
}

var _ io.Writer = (*head)(nil)
