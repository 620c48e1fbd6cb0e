package sshclient

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Reason is why something with a node did not work. Reasons are errors, so that
// errors.Is(err, sshclient.Unreachable) asks for one.
type Reason string

// The reasons.
const (
	Unreachable    Reason = "unreachable"      // no TCP connection
	TimedOut       Reason = "timed out"        // not connected and authenticated in time
	Canceled       Reason = "canceled"         // by the caller's context
	HostKeyUnknown Reason = "host key unknown" // known_hosts does not know the host
	HostKeyChanged Reason = "host key changed" // known_hosts knows another key
	HostKeyRevoked Reason = "host key revoked" // known_hosts says @revoked
	AuthRefused    Reason = "login refused"    // no key was accepted
	Identity       Reason = "key unusable"     // a key file cannot be used
	Settings       Reason = "settings"         // ssh_config or inventory cannot be followed
	Protocol       Reason = "protocol"         // the server does not speak SSH as we do
	Sessions       Reason = "session refused"  // connected, but no program can be started
	Lost           Reason = "connection lost"  // after it was made
	Closed         Reason = "closed"           // by Close
)

// Error is the reason.
func (r Reason) Error() string { return string(r) }

// Error says what failed at which node, and what to do.
type Error struct {
	Reason Reason
	Node   string // of the inventory
	Host   string // what was connected to, "user@host:port"; a jump host, maybe
	Jump   bool   // Host is a jump host
	What   string // what happened, with values
	Do     string // the remedy; may be empty
	Err    error  // the cause; may be nil
}

// Error writes one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("node " + e.Node)
	switch {
	case e.Host == "":
	case e.Jump:
		b.WriteString(" (at its jump host " + e.Host + ")")
	default:
		b.WriteString(" (" + e.Host + ")")
	}
	b.WriteString(": " + string(e.Reason))
	if e.What != "" {
		b.WriteString(": " + e.What)
	}
	if e.Do != "" {
		b.WriteString("; " + e.Do)
	}
	return b.String()
}

// Is finds the reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error, or "".
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// ExitError is a program that ended with another status than 0.
type ExitError struct {
	Node    string
	Program string // argv[0]; the other words may be secret
	Status  int    // 128 + its number after a signal
	Signal  string // "KILL"; empty when it ended by itself
	Stderr  string // the end of its standard error, of Run only
}

// Error names the node, the program and how it ended, with its last words.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("node %s: %s: exit status %d", e.Node, e.Program, e.Status)
	if e.Signal != "" {
		s = fmt.Sprintf("node %s: %s: killed by SIG%s", e.Node, e.Program, e.Signal)
	}
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// OutputError is a program that wrote more than Options.MaxOutput.
type OutputError struct {
	Node, Program string
	Limit         int // bytes
}

// Error names the node, the program and the bound.
func (e *OutputError) Error() string {
	return fmt.Sprintf("node %s: %s wrote more than %d bytes, and was ended", e.Node, e.Program, e.Limit)
}

// tail returns the last words of a program, on one line and without what could
// drive a terminal.
func tail(b []byte) string {
	const limit = 1000
	s := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
	if len(s) > limit {
		s = "…" + strings.ToValidUTF8(s[len(s)-limit:], "")
	}
	return oneLine(s)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
