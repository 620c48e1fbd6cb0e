package undo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// table undoes "note" by noting it, and fails at "stuck" as long as it is.
func notes(done *[]string, stuck *bool) Table {
	return Table{
		KindCommand: RunCommand,
		"note": On(func(_ context.Context, what string) error {
			*done = append(*done, what)
			return nil
		}),
		"stuck": On(func(_ context.Context, what string) error {
			if *stuck {
				return errors.New("busy")
			}
			*done = append(*done, what)
			return nil
		}),
	}
}

// keeper is a Keeper that fails from its n-th record on.
type keeper struct {
	left int
	ids  []uint64
	done []uint64
}

func (k *keeper) Push(id uint64, _ Record) error {
	if k.left == 0 {
		return errors.New("full")
	}
	k.left--
	k.ids = append(k.ids, id)
	return nil
}

func (k *keeper) Done(id uint64) error {
	k.done = append(k.done, id)
	return nil
}

func TestStackRevertsNewestFirst(t *testing.T) {
	var done []string
	stuck := true
	k := &keeper{left: 100}
	s := NewStack(notes(&done, &stuck), nil, k)
	for _, r := range []Record{New("note", "one", "1"), New("stuck", "two", "2"), New("note", "three", "3")} {
		if err := s.Push(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Push(New("dance", "four", nil)); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("a kind that nobody undoes: %v", err)
	}
	undone, failed := s.Revert(t.Context())
	if !slices.Equal(undone, []string{"three", "one"}) || len(failed) != 1 || failed[0].Error() != "two: busy" || s.Len() != 1 {
		t.Errorf("undone %v, failed %v, left %d", undone, failed, s.Len())
	}
	// What could not be undone is tried again, before what was older than it.
	stuck = false
	if undone, failed = s.Revert(t.Context()); !slices.Equal(undone, []string{"two"}) || len(failed) > 0 || s.Len() != 0 {
		t.Errorf("undone %v, failed %v", undone, failed)
	}
	if !slices.Equal(done, []string{"3", "1", "2"}) || !slices.Equal(k.ids, []uint64{1, 2, 3}) || !slices.Equal(k.done, []uint64{3, 1, 2}) {
		t.Errorf("done %v, keeper %v %v", done, k.ids, k.done)
	}
}

// A change is made when somebody has its record; when nobody has, it is not.
func TestKeepersThatFail(t *testing.T) {
	var done []string
	var warned []string
	full, good := &keeper{left: 1}, &keeper{left: 2}
	s := NewStack(notes(&done, new(bool)), func(err error) { warned = append(warned, err.Error()) }, full, good)
	for range 2 {
		if err := s.Push(New("note", "it", "x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Push(New("note", "it", "x")); err == nil || !strings.Contains(err.Error(), "it is not changed") {
		t.Errorf("with no keeper left: %v", err)
	}
	if !slices.Equal(warned, []string{"full"}) || s.Len() != 2 {
		t.Errorf("warned %v, %d records", warned, s.Len())
	}
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a file; rm -rf $HOME")
	run := func(argv ...string) error {
		r := Command("it", argv...)
		return RunCommand(t.Context(), r.Data)
	}
	if err := run("touch", file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("words reached the program otherwise: %v", err)
	}
	if err := run("sh", "-c", "echo 'command failed: No such device (-19)' >&2; exit 237"); err != nil {
		t.Errorf("an interface that is gone: %v", err)
	}
	if err := run("sh", "-c", "echo no such luck; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: no such luck") {
		t.Errorf("a failure: %v", err)
	}
	if err := run("/nonexistent/tool"); err == nil {
		t.Error("a program that is not there")
	}
	for _, bad := range []string{`[]`, `[""]`, `"rm"`, `{}`, `[1]`} {
		if err := RunCommand(t.Context(), json.RawMessage(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := RunCommand(ctx, Command("it", "sleep", "60").Data); err == nil || time.Since(begin) > 20*time.Second {
		t.Errorf("a program that hangs: %v after %v", err, time.Since(begin))
	}
}

// A call that knows no end is left alone.
func TestOneThatHangsDoesNotKeepTheOthers(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	table := Table{"hang": func(context.Context, json.RawMessage) error { <-hang; return nil }}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := table.run(ctx, New("hang", "it", nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestDataIsRead(t *testing.T) {
	type thing struct {
		A int `json:"a"`
	}
	f := On(func(_ context.Context, v thing) error {
		if v.A != 7 {
			t.Errorf("%+v", v)
		}
		return nil
	})
	if err := f(t.Context(), New("k", "w", thing{7}).Data); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{``, `{"a":"7"}`, `{"a":7,"b":1}`, `[`} {
		if err := f(t.Context(), json.RawMessage(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
