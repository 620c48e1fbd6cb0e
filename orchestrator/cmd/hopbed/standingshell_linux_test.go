package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/testenv"
)

// A shell in a node: a terminal of its own with the user's size, Ctrl-C for what
// runs in it, and its exit status.
func TestAShellInANode(t *testing.T) {
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml")
	master, slave := terminal(t)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, l.dir, "exec", "n02")
	p.cmd.Env = append(p.cmd.Env, "SHELL=/bin/sh", "PS1=> ", "ENV=")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 100)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil {
				close(shown)
				return
			}
			shown <- string(b[:n])
		}
	}()
	all := ""
	await := func(text string) {
		t.Helper()
		limit := time.After(20 * time.Second)
		for !strings.Contains(all, text) {
			select {
			case s := <-shown:
				all += s
			case <-limit:
				t.Fatalf("the terminal does not show %q:\n%s", text, all)
			}
		}
		_, all, _ = strings.Cut(all, text)
	}
	typed := func(s string) {
		t.Helper()
		if _, err := master.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	await("> ")
	typed("echo $(stty size) $(hostname) $(tty | cut -c1-9)\n")
	await("33 77 n02 /dev/pts/")
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: 50}); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGWINCH)
	time.Sleep(100 * time.Millisecond)
	typed("stty size\n")
	await("20 50")
	typed("sleep 1000; echo status $?\n")
	await("$?\r\n")
	time.Sleep(200 * time.Millisecond)
	typed("\x03")
	await("> ")
	typed("exit 9\n")
	if err := p.cmd.Wait(); err == nil || p.cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("%v\n%s", p.cmd.ProcessState, all)
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v\n%+v\n%+v", err, before, after)
	}
	l.must("down")
	l.gone(nil)
}

func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// In the background of a shell a program runs on, without a terminal of its own:
// what is typed is the shell's.
func TestAProgramInTheBackground(t *testing.T) {
	testenv.Need(t, testenv.Program("bash"))
	l := newStandingLab(t, hand)
	l.must("up", "f.yaml")
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	_, slave := terminal(t)
	p := prepare(t, l.dir)
	p.cmd.Path, p.cmd.Args = bash, []string{"bash", "--norc", "-mc",
		`(exec -a ` + cliPart + ` "$PROGRAM" exec n01 sh -c 'cat; test -t 0 || echo no terminal to read from >&2; exit 6') 2>said & wait %1`}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(p.cmd.Env, "PROGRAM="+self)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		t.Fatal("it does not end: it was stopped for want of the terminal, or reads it")
	}
	b, err := os.ReadFile(l.dir + "/said")
	if p.cmd.ProcessState.ExitCode() != 6 || err != nil || !strings.Contains(string(b), "no terminal to read from") {
		t.Errorf("%v: %s, %v", p.cmd.ProcessState, b, err)
	}
	_ = os.Remove(l.dir + "/said")
	l.must("down")
	l.gone(nil)
}
