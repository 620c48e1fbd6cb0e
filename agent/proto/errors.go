package proto

import (
	"errors"
	"fmt"
	"strings"
)

// Code classifies an error so that the controller can act on it.
type Code string

// The codes of errors.
const (
	// CodeVersion: the two sides speak different versions.
	CodeVersion Code = "version"
	// CodeMalformed: a line was not a message (too long, unknown field …).
	CodeMalformed Code = "malformed"
	// CodeOrder: the order does not fit the agent's state or makes no sense.
	CodeOrder Code = "order"
	// CodeNotApplied: a setting was given to the kernel and did not take.
	CodeNotApplied Code = "not-applied"
	// CodeUnavailable: this host or kernel does not have what was asked for.
	CodeUnavailable Code = "unavailable"
	// CodeTimeout: a deadline passed.
	CodeTimeout Code = "timeout"
	// CodeFlow: a flow failed while it ran.
	CodeFlow Code = "flow"
	// CodeCorrupt: data arrived that was not sent.
	CodeCorrupt Code = "corrupt"
	// CodeSystem: the operating system refused a call.
	CodeSystem Code = "system"
	// CodeInternal: hopbed itself is wrong.
	CodeInternal Code = "internal"
)

// Error is a failure that crosses the wire. Use errors.As to get it.
type Error struct {
	Code Code   `json:"code"`
	Node string `json:"node,omitempty"` // name of the node
	// What names the setting, flow or order concerned ("net.ipv4.ip_forward",
	// "flow 3").
	What   string `json:"what,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	Got    string `json:"got,omitempty"`
	Detail string `json:"detail,omitempty"`
	Remedy string `json:"remedy,omitempty"` // what to do
}

// Error implements error: what failed, on which node, with which value, and
// what to do.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Node != "" {
		fmt.Fprintf(&b, "node %s: ", e.Node)
	}
	if e.What != "" {
		fmt.Fprintf(&b, "%s: ", e.What)
	}
	switch {
	case e.Code == CodeNotApplied:
		fmt.Fprintf(&b, "did not take: wanted %q, got %q", e.Wanted, e.Got)
	case e.Code == CodeUnavailable && e.Wanted != "":
		fmt.Fprintf(&b, "unavailable on this kernel: %s", e.Wanted)
		if e.Got != "" {
			fmt.Fprintf(&b, "; available: %s", e.Got)
		}
	case e.Wanted == "" && e.Got != "":
		fmt.Fprintf(&b, "%s: got %q", e.Code, e.Got)
	case e.Got == "" && e.Wanted != "":
		fmt.Fprintf(&b, "%s: wanted %q", e.Code, e.Wanted)
	case e.Wanted != "":
		fmt.Fprintf(&b, "%s (wanted %q, got %q)", e.Code, e.Wanted, e.Got)
	default:
		b.WriteString(string(e.Code))
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// AsError returns err as an *Error, wrapping foreign errors under code.
func AsError(err error, code Code) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: code, Detail: err.Error()}
}
