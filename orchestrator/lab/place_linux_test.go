package lab

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
)

// dialPart dials a lab's socket as another user and says what comes of it.
const dialPart = "lab-test-dial"

func TestMain(m *testing.M) {
	if os.Args[0] == dialPart {
		c, err := dial(os.Args[1])
		if err == nil {
			err = writeRequest(c, &request{Status: true}, nil)
		}
		var a answer
		if err == nil {
			err = readMessage(c, &a)
		}
		if err != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func place(t *testing.T) *Place {
	t.Helper()
	p, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNamesAreClaimedOnce(t *testing.T) {
	p := place(t)
	c, before, err := p.Claim("x")
	if err != nil || before != nil {
		t.Fatal(before, err)
	}
	if err := c.Write(Entry{Name: "x", Tag: "hopbed-1", Experiment: "f.yaml", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var taken *Taken
	if _, _, err := p.Claim("x"); !errors.As(err, &taken) || !strings.Contains(err.Error(), "hopbed down x") || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("a second claim: %v", err)
	}
	all, err := p.List()
	if err != nil || len(all) != 1 || !all[0].Alive || all[0].Tag != "hopbed-1" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if all, err = p.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	// Somebody who only looks is not taken for a keeper.
	f, err := os.Create(p.file("y"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	go func() { time.Sleep(50 * time.Millisecond); f.Close() }()
	if c, _, err = p.Claim("y"); err != nil {
		t.Errorf("while somebody looked: %v", err)
	} else if err := c.Release(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "../x", "X", "-x", "a b", strings.Repeat("x", 65), "x/y", "x\n"} {
		if _, _, err := p.Claim(name); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
}

// A lab whose keeper is gone is told once, and its name is free.
func TestALabThatEndedIsTold(t *testing.T) {
	p := place(t)
	c, _, err := p.Claim("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Write(Entry{Name: "x", Tag: "hopbed-1", Ended: "the emulator was killed"}), c.Leave()); err != nil {
		t.Fatal(err)
	}
	var ended *Ended
	if _, err := p.Select(""); !errors.As(err, &ended) || !strings.Contains(err.Error(), "the emulator was killed") {
		t.Errorf("%v", err)
	}
	if _, err := p.Select("x"); err == nil || errors.As(err, &ended) && err == error(ended) || !strings.Contains(err.Error(), `no lab "x"`) {
		t.Errorf("told twice: %v", err)
	}
	c, _, err = p.Claim("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Write(Entry{Name: "x", Tag: "hopbed-2"}), c.Leave()); err != nil {
		t.Fatal(err)
	}
	if c, before, err := p.Claim("x"); err != nil || before == nil || before.Tag != "hopbed-2" {
		t.Errorf("%+v, %v", before, err)
	} else if err := c.Release(); err != nil {
		t.Error(err)
	}
}

func TestSelect(t *testing.T) {
	p := place(t)
	if _, err := p.Select(""); err == nil || !strings.Contains(err.Error(), "no lab stands") {
		t.Errorf("%v", err)
	}
	for _, n := range []string{"one", "two"} {
		c, _, err := p.Claim(n)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		if err := c.Write(Entry{Name: n, Tag: "hopbed-" + n}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Select(""); err == nil || !strings.Contains(err.Error(), "one, two") || !strings.Contains(err.Error(), "--lab") {
		t.Errorf("%v", err)
	}
	if l, err := p.Select("two"); err != nil || l.Tag != "hopbed-two" {
		t.Errorf("%v, %v", l, err)
	}
}

// A folder that others may look into is none.
func TestThePlaceIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "labs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("%v", err)
	}
}

// Only the lab's owner is heard, whatever the socket's mode says; and the length of
// the folder's path is of no matter.
func TestOtherUsersAreRefused(t *testing.T) {
	testenv.Need(t, testenv.Root)
	folder := filepath.Join("/tmp", "hopbed-lab-test-"+strings.Repeat("x", 120))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	l, err := listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(filepath.Join(folder, socketName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode: %v, %v", st, err)
	}
	if err := os.Chmod(filepath.Join(folder, socketName), 0o666); err != nil {
		t.Fatal(err)
	}
	refusals := make(chan error, 2)
	go func() {
		for range 2 {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			func(c *net.UnixConn) {
				defer c.Close()
				err := checkPeer(c)
				if refusals <- err; err == nil {
					if _, _, err := readRequest(c); err == nil {
						_ = writeMessage(c, &answer{Status: &Status{}})
					}
				}
			}(c)
		}
	}()
	ask := func(uid uint32) (status int, refused error) {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{dialPart, folder}, SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}}
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
		}
		return cmd.ProcessState.ExitCode(), <-refusals
	}
	if status, refused := ask(0); status != 0 || refused != nil {
		t.Errorf("the owner: status %d, %v", status, refused)
	}
	if status, refused := ask(65534); status != 3 || refused == nil || !strings.Contains(refused.Error(), "user 65534") {
		t.Errorf("another user: status %d, %v", status, refused)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	r, w := net.Pipe()
	go func() { _, _ = w.Write([]byte{0xff, 0xff, 0xff, 0xff}) }()
	if err := readMessage(r, &answer{}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
	if err := writeMessage(w, &request{Exec: &execSpec{Dir: strings.Repeat("x", maxMessage)}}); err == nil || !strings.Contains(err.Error(), "shorten") {
		t.Errorf("%v", err)
	}
}
