package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/reexec"
)

func TestMain(m *testing.M) {
	reexec.Dispatch(reexec.Table{"hopbed-test-controller": controller})
	os.Exit(m.Run())
}

// controller opens a journal in os.Args[1], creates a directory, a file and a
// process with a child of its own, and waits to be killed.
func controller() int {
	fail := func(err error) int { fmt.Println("error", err); return 1 }
	j, err := Open(os.Args[1], NewTag())
	if err != nil {
		return fail(err)
	}
	dir, err := j.MkdirTemp(os.Args[1], "work")
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600); err != nil {
		return fail(err)
	}
	f, err := j.CreateTemp(os.Args[1], "file")
	if err != nil {
		return fail(err)
	}
	f.Close()
	if err := j.Record("agent", "n01"); err != nil {
		return fail(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "sleep 3600 & echo $!; wait")
	cmd.Env = append(os.Environ(), TagVariable+"="+j.Tag())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	var grandchild int
	if _, err := fmt.Fscan(out, &grandchild); err != nil {
		return fail(err)
	}
	if len(os.Args) < 3 { // else: killed before it could note the process
		start, err := procfs.StartTime(cmd.Process.Pid)
		if err != nil {
			return fail(err)
		}
		if err := j.Record(KindPID, fmt.Sprintf("%d:%d", cmd.Process.Pid, start)); err != nil {
			return fail(err)
		}
	}
	fmt.Println(j.Tag(), cmd.Process.Pid, grandchild, dir)
	time.Sleep(time.Hour)
	return 0
}

type run struct {
	cmd               *exec.Cmd
	tag, dir          string
	child, grandchild int
}

func startController(t *testing.T, args ...string) *run {
	t.Helper()
	r := &run{cmd: reexec.Command("hopbed-test-controller", args)}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
	if _, err := fmt.Fscan(out, &r.tag, &r.child, &r.grandchild, &r.dir); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) kill() { r.cmd.Process.Kill(); r.cmd.Wait() }

func entries(t *testing.T, dir string) []string {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range e {
		names = append(names, x.Name())
	}
	return names
}

// Requirement: what a kill -9 left is removed exactly, processes that the
// children started included; a process of the same program without the tag is
// not touched.
func TestCleanAfterKill(t *testing.T) {
	for _, args := range [][]string{{}, {"unnoted"}} {
		dir := t.TempDir()
		other := exec.Command("/bin/sleep", "3600")
		other.Env = append(os.Environ(), TagVariable+"=somebody-else")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		r := startController(t, append([]string{dir}, args...)...)
		r.kill()
		if !procfs.Running(r.child) || !procfs.Running(r.grandchild) {
			t.Fatal("nothing was left behind: the test shows nothing")
		}
		got, err := Clean(context.Background(), dir)
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		c := got[0]
		if c.Alive || len(c.Left) > 0 || c.Tag != r.tag || len(c.Removed) != 4 {
			t.Errorf("cleaned %+v; want two processes, a directory and a file", c)
		}
		if procfs.Running(r.child) || procfs.Running(r.grandchild) {
			t.Error("a process survived")
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("left in the directory: %v", left)
		}
		if !procfs.Running(other.Process.Pid) {
			t.Error("a process that is not ours was killed")
		}
		other.Process.Kill()
		other.Wait()
		if again, err := Clean(context.Background(), dir); err != nil || len(again) != 0 {
			t.Errorf("a second clean: %+v, %v", again, err)
		}
	}
}

// Requirement: a running hopbed is left alone, and named.
func TestALivingControllerIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	r := startController(t, dir)
	before := entries(t, dir)
	got, err := Clean(context.Background(), dir)
	if err != nil || len(got) != 1 || !got[0].Alive || got[0].Tag != r.tag || !strings.Contains(got[0].Owner, fmt.Sprint("pid ", r.cmd.Process.Pid)) {
		t.Errorf("%+v, %v; want one living controller, pid %d", got, err, r.cmd.Process.Pid)
	}
	if !procfs.Running(r.child) || !slices.Equal(entries(t, dir), before) {
		t.Error("something of it was removed")
	}
	r.kill()
	if got, err := Clean(context.Background(), dir); err != nil || len(got) != 1 || len(got[0].Left) > 0 {
		t.Errorf("after its death: %+v, %v", got, err)
	}
}

// rewrite changes the entries of a dead controller's journal.
func rewrite(t *testing.T, dir string, change func([]Entry) []Entry) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	es, err := read(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range change(es) {
		if err := json.NewEncoder(&b).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(paths[0], b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

// Requirement: after a reboot only files are removed, since process ids and
// even tags mean nothing any more.
func TestCleanAfterReboot(t *testing.T) {
	dir := t.TempDir()
	r := startController(t, dir)
	r.kill()
	rewrite(t, dir, func(es []Entry) []Entry { es[0].Boot = "another boot"; return es })
	got, err := Clean(context.Background(), dir)
	if err != nil || len(got) != 1 || len(got[0].Removed) != 2 || len(got[0].Left) > 0 {
		t.Errorf("%+v, %v; want the directory and the file removed", got, err)
	}
	if !procfs.Running(r.child) {
		t.Error("a process was killed by the journal of another boot")
	}
	for _, pid := range []int{r.grandchild, r.child} {
		p, err := os.FindProcess(pid)
		if err == nil {
			p.Kill()
		}
	}
}

// A path that does not carry the tag is not removed, whatever the journal says.
func TestForeignPathsAreNotRemoved(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := startController(t, dir)
	r.kill()
	path := rewrite(t, dir, func(es []Entry) []Entry {
		return append(es, Entry{Kind: KindFile, ID: precious}, Entry{Kind: KindDir, ID: elsewhere})
	})
	got, err := Clean(context.Background(), dir)
	if err != nil || len(got) != 1 || len(got[0].Left) != 2 || len(got[0].Removed) != 4 {
		t.Errorf("%+v, %v; want two refusals", got, err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("somebody else's file was removed")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the journal was removed although something is left")
	}
}

func TestDamagedJournals(t *testing.T) {
	dir := t.TempDir()
	tag := NewTag()
	owner, _ := json.Marshal(Entry{Kind: KindOwner, Tag: tag, Boot: "x"})
	for name, c := range map[string]struct{ content, want string }{
		tag + suffix:                {string(owner) + "\n{\"kind\":\"ag", ""}, // cut by a crash: what it announces was not created
		"empty" + suffix:            {"", ""},
		"garbage" + suffix:          {"hello\nworld\n", "line 1"},
		"middle-" + tag + suffix:    {string(owner) + "\ngarbage\n" + string(owner) + "\n", "line 2"},
		"renamed" + suffix:          {string(owner) + "\n", "renamed or damaged"},
		"something-else-altogether": {"hello", ""},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Clean(context.Background(), dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		_, err = os.Stat(path)
		if removed, want := os.IsNotExist(err), c.want == "" && strings.HasSuffix(name, suffix); removed != want {
			t.Errorf("%s: removed %v, want %v", name, removed, want)
		}
		os.Remove(path)
	}
}

// Requirement: an entry is on disk when Record returns, also when many record
// at once.
func TestRecordsAreWrittenWhenRecordReturns(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, NewTag())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := fmt.Sprintf("n%03d", i)
			if err := j.Record("agent", id); err != nil {
				t.Error(err)
			}
			b, err := os.ReadFile(j.Path())
			if err != nil || !bytes.Contains(b, []byte(`"id":"`+id+`"`)) {
				t.Errorf("%s is not in the journal (%v)", id, err)
			}
		})
	}
	wg.Wait()
	es, err := read(j.Path())
	if err != nil || len(es) != 51 {
		t.Errorf("%d entries, %v; want 51", len(es), err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("an orderly end leaves %v", left)
	}
	if err := j.Record("agent", "late"); err == nil {
		t.Error("a closed journal took an entry")
	}
}

func TestCloseReportsWhatItCannotRemove(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, NewTag())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := j.MkdirTemp(dir, "kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mine, mine+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := j.Gone(KindDir, mine); err != nil {
		t.Fatal(err)
	}
	if err := j.Record(KindFile, dir); err != nil { // a path of somebody else
		t.Fatal(err)
	}
	err = j.Close()
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Close: %v, want the path that is left", err)
	}
	if _, err := os.Stat(j.Path()); err != nil {
		t.Error("the journal is gone although something is left")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tag := range []string{"", "short", "with/slash-in-it", "line\nbreak-in-it"} {
		if j, err := Open(dir, tag); err == nil {
			j.Close()
			t.Errorf("tag %q was accepted", tag)
		}
	}
	tag := NewTag()
	j, err := Open(dir, tag)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := Open(dir, tag); err == nil {
		t.Error("two journals of one tag")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, NewTag()); err == nil {
		t.Error("a journal below a file")
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	if d, err := DefaultDir(); err != nil || d != "/state/hopbed/journal" {
		t.Errorf("%q, %v", d, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOPBED_ROOTLESS", "1")
	t.Setenv("HOME", "/home/u")
	if d, err := DefaultDir(); err != nil || d != "/home/u/.local/state/hopbed/journal" {
		t.Errorf("%q, %v", d, err)
	}
}
