package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecondWriterIsTold(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "results.db")
	first := open(t, path)
	_, err := Open(ctx, path)
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("error: %v", err)
	}
	for _, want := range []string{"process ", "--db", path} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message %q does not say %q", err, want)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(ctx, path)
	if err != nil {
		t.Fatalf("after the first has closed: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// A writer that was killed leaves a lock file, but no lock.
func TestKilledWriterDoesNotLockForEver(t *testing.T) {
	const inside = "HOPBED_TEST_DIE"
	if path := os.Getenv(inside); path != "" {
		s, err := Open(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		c := campaign(t, s)
		if err := s.SaveRun(context.Background(), record(c.ID, 1, 10)); err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		p.Kill()
		select {}
	}
	path := filepath.Join(t.TempDir(), "results.db")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriterDoesNotLockForEver$")
	cmd.Env = append(os.Environ(), inside+"="+path)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("the writer was not killed: %s", out)
	}
	if _, err := os.Stat(lockPath(path)); err != nil {
		t.Fatalf("the killed writer left no lock file, so this tests nothing: %v", err)
	}
	s := open(t, path)
	if n := counts(t, s)["runs"]; n != 1 {
		t.Errorf("%d runs survived, want 1", n)
	}
	integrity(t, s)
}

// What is not ours, or newer than us, is refused and stays as it is to the
// last byte.
func TestForeignFilesAreRefused(t *testing.T) {
	ctx := context.Background()
	make := func(sql string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := connect(path, "rwc")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		make func(*testing.T, string)
		want string
	}{
		"newer": {func(t *testing.T, path string) {
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			make("PRAGMA user_version = 9999")(t, path)
		}, "format 9999, written by a newer hopbed"},
		"other application": {make("CREATE TABLE bookmarks (url TEXT)"), "another application"},
		"no database": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("hello, world\n"), 1000), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "not SQLite"},
		"folder": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			for what, open := range map[string]func(context.Context, string) (*Store, error){"Open": Open, "OpenRead": OpenRead} {
				s, err := open(ctx, path)
				var fe *FormatError
				if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "not changed") {
					t.Errorf("%s: %v", what, err)
				}
				if err == nil {
					s.Close()
				}
			}
			after, _ := os.ReadFile(path)
			if !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
				t.Errorf("files beside it: %v", left)
			}
		})
	}
}

func TestMissingPlaces(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if _, err := OpenRead(ctx, filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "run an experiment first") {
		t.Errorf("missing database: %v", err)
	}
	if _, err := Open(ctx, filepath.Join(dir, "no", "folder.db")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "folder") {
		t.Errorf("missing folder: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// Names that mean something in a URI are names here.
func TestPathsAreTakenLiterally(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"a b.db", "50%.db", "what?mode=memory.db", "x#y.db", "ü&cache=shared.db", "file:z.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, path)
		campaign(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q was stored elsewhere: %v", name, err)
			continue
		}
		r, err := OpenRead(ctx, path)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if c, err := r.LatestCampaign(ctx); err != nil || c.Name != "two" {
			t.Errorf("%q: %v, %v", name, c, err)
		}
		r.Close()
	}
}

// An empty file, as mktemp makes it, is a database to be.
func TestEmptyFileIsFilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	campaign(t, open(t, path))
}

// Foreign programs that hold the database are named as what to look for.
func TestBusyMessage(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	if _, err := s.w.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	other, err := connect(path, "rw", "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Campaign{Name: "x", Backend: "sim", FileText: "x"}
	_, err = s.CreateCampaign(ctx, c)
	var busy *BusyError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "locked by another program") {
		t.Errorf("error: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateCampaign(ctx, c); err != nil {
		t.Errorf("after it let go: %v", err)
	}
}

// A migration that fails half-way leaves the format before it.
func TestFailedMigrationIsUndone(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	campaign(t, s)
	next := formatVersion() + 1
	if err := s.step(ctx, next, "broken.sql", "CREATE TABLE extra (a INTEGER); INSERT INTO nowhere VALUES (1)"); err == nil {
		t.Fatal("a broken migration passed")
	}
	var version, extra int
	if err := s.w.Get(&version, "PRAGMA user_version"); err != nil || version != formatVersion() {
		t.Errorf("version %d, %v", version, err)
	}
	if err := s.w.Get(&extra, "SELECT count(*) FROM sqlite_master WHERE name = 'extra'"); err != nil || extra != 0 {
		t.Errorf("%d tables left, %v", extra, err)
	}
	if _, err := s.Campaign(ctx, 1); err != nil {
		t.Error(err)
	}
}

// Links lead to one database, which has one writer.
func TestLinksShareTheWriter(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	s, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Symlink("a.db", link); err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if again, err := Open(t.Context(), link); !errors.As(err, &locked) {
		t.Errorf("a second writer came in through a link: %v, %v", again, err)
	}
}

// A reader can tell a campaign at work from one that was killed, and does not
// keep writers out.
func TestBeingWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenRead(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.BeingWritten() || !s.BeingWritten() {
		t.Error("a writer is not seen")
	}
	id, err := s.CreateCampaign(t.Context(), &Campaign{Name: "c", Backend: "sim", FileText: "x"})
	if err != nil {
		t.Fatal(err)
	}
	looks := func(want CampaignStatus) {
		t.Helper()
		one, err1 := r.Campaign(t.Context(), id)
		last, err2 := r.LatestCampaign(t.Context())
		all, err3 := r.Campaigns(t.Context())
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if one.Status != want || last.Status != want || all[0].Status != want {
			t.Errorf("the campaign is %s, %s, %s; want %s", one.Status, last.Status, all[0].Status, want)
		}
	}
	looks(CampaignRunning)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r.BeingWritten() {
		t.Error("a writer is seen that has gone")
	}
	looks(CampaignKilled)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.BeingWritten()
			}
		}
	}()
	defer close(stop)
	for range 20 {
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is written to a file that was removed is lost, and must not look stored.
func TestRemovedWhileOpen(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := &Campaign{Name: "c", Backend: "sim", FileText: "x"}
			if _, err := s.CreateCampaign(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if err := remove(path); err != nil {
				t.Fatal(err)
			}
			var gone *RemovedError
			if err := s.SaveRun(t.Context(), record(c.ID, 1, 1)); !errors.As(err, &gone) {
				t.Errorf("the run was saved into nowhere: %v", err)
			}
		})
	}
}
