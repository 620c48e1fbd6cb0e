package sshd

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inNamespace runs f on a thread in the network namespace; what f starts is born
// there.
func inNamespace(path string, f func() error) error {
	if path == "" {
		return f()
	}
	target, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer target.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // a thread that cannot come back dies with its goroutine
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- fmt.Errorf("own network namespace: %w", err)
			return
		}
		defer home.Close()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("enter the network namespace %s: %w", path, err)
			return
		}
		err = f()
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// mayLogIn finds out whether a server without PAM would let the current user in:
// it refuses accounts whose password is locked by "!", in spite of their keys.
func mayLogIn() error {
	if os.Geteuid() != 0 {
		return nil // the server cannot read it either, and does not look
	}
	shadow, err := os.ReadFile("/etc/shadow")
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(shadow), "\n") {
		if f := strings.SplitN(line, ":", 3); len(f) == 3 && f[0] == "root" && strings.HasPrefix(f[1], "!") {
			return &Unavailable{`root's account is locked ("!" in /etc/shadow)`, "give root the password \"*\", which no password matches but keys do: usermod -p '*' root"}
		}
	}
	return nil
}

// Processes returns the server's processes, itself first, each before those that
// it started: connections, sessions and what runs in them.
func (s *Server) Processes() []int { return append([]int{s.PID()}, descendants(s.PID())...) }

// Connections returns the processes of the server's connections and what they
// started, without the one that accepts.
func (s *Server) Connections() []int { return descendants(s.PID()) }

// Pause stops the server and everything in it, as if its node had been cut off;
// Resume lets it go on.
func (s *Server) Pause() { s.signal(unix.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(unix.SIGCONT) }

// DropConnections kills every connection and its sessions; the server stays.
func (s *Server) DropConnections() {
	for _, pid := range s.Connections() {
		unix.Kill(pid, unix.SIGKILL)
	}
}

func (s *Server) signal(sig unix.Signal) {
	for _, pid := range s.Processes() {
		unix.Kill(pid, sig)
	}
}

// killTree stops the process first, so that nothing is born while its
// descendants are listed.
func killTree(pid int) {
	unix.Kill(pid, unix.SIGSTOP)
	for _, child := range descendants(pid) {
		unix.Kill(child, unix.SIGKILL)
	}
}

// descendants lists the processes below one, parents first.
func descendants(root int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state ppid …: the name may hold anything, parentheses too.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], pid)
	}
	var out []int
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		out = append(out, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return out
}
