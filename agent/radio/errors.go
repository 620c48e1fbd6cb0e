package radio

import (
	"fmt"
	"strings"
)

// Kind classifies an Error.
type Kind string

// The kinds of errors.
const (
	// Invalid: the configuration contradicts itself or is out of 802.11's range.
	Invalid Kind = "invalid"
	// Unsupported: this driver has no way to make the setting, on any host.
	Unsupported Kind = "unsupported"
	// Unavailable: this host lacks a tool, or the interface is not of this driver.
	Unavailable Kind = "unavailable"
	// Rejected: the driver refused the setting.
	Rejected Kind = "rejected"
	// NotTaken: the driver accepted the setting, and has another value.
	NotTaken Kind = "not-taken"
)

// Error is what a driver returns: which setting of which interface, wanted and
// got, why, and what to do.
type Error struct {
	Kind      Kind
	Driver    string
	Interface string
	Setting   string // "bk.txop"; empty where the whole interface is concerned
	Wanted    string
	Got       string
	Detail    string
	Remedy    string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "radio %s (%s)", e.Interface, e.Driver)
	if e.Setting != "" {
		b.WriteString(": " + e.Setting)
		if e.Wanted != "" {
			b.WriteString("=" + e.Wanted)
		}
	}
	switch e.Kind {
	case NotTaken:
		fmt.Fprintf(&b, ": did not take: wanted %q, got %q", e.Wanted, e.Got)
	case Rejected:
		b.WriteString(": refused by the driver")
	default:
		b.WriteString(": " + string(e.Kind))
	}
	if e.Kind == Rejected && e.Got != "" {
		b.WriteString(", which said: " + e.Got)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// fail begins an error about a setting of c.
func (c *Config) fail(k Kind, setting, wanted, detail, remedy string) *Error {
	return &Error{Kind: k, Driver: c.Driver, Interface: c.Interface, Setting: setting, Wanted: wanted, Detail: detail, Remedy: remedy}
}
