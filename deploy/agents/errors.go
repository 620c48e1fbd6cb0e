package agents

import (
	"fmt"
	"strings"
)

// Kind says what keeps an agent from being on a node.
type Kind string

// The kinds of errors.
const (
	KindArchitecture Kind = "architecture" // the node's processor is not known, or the program is for another one
	KindNoAgent      Kind = "no agent"     // there is no program for the node's processor
	KindVersion      Kind = "version"      // the program does not fit this controller
	KindPrivileges   Kind = "privileges"   // the agent could not run as root
	KindFolder       Kind = "folder"       // the agent's folder cannot be made, written or trusted
	KindDiskFull     Kind = "disk full"
	KindNoExec       Kind = "no exec"  // programs in the folder cannot be executed
	KindDamaged      Kind = "damaged"  // what arrived is not what was sent
	KindSystem       Kind = "system"   // the node does not run Linux
	KindShell        Kind = "no reply" // the node's shell did not do as a POSIX shell does
)

// Error says what keeps an agent from being on a node, and what to do.
type Error struct {
	Kind    Kind
	Node    string // "" where it is not about a node
	What    string
	Because string // what was seen there
	Do      string
	Err     error
}

// Error names the node, what failed, why, and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Node != "" {
		fmt.Fprintf(&b, "node %s: ", e.Node)
	}
	b.WriteString(e.What)
	if e.Because != "" {
		b.WriteString(": " + e.Because)
	}
	if e.Do != "" {
		b.WriteString("; " + e.Do)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
