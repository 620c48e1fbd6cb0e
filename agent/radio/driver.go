package radio

import (
	"context"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/undo"
)

// Driver sets the parameters of one kind of interface. Every driver passes the
// same conformance test. All errors are *Error.
type Driver interface {
	// Name is what Config.Driver says.
	Name() string
	// Plan lists the commands that make the settings, in order. It looks at
	// nothing but the configuration, and refuses one that no host could honour:
	// Invalid, Unsupported.
	Plan(Config) ([]Step, error)
	// Probe tells whether this host has the driver's tools and the interface is
	// one of this driver: Unavailable.
	Probe(context.Context, Host, Config) error
	// Apply runs the commands of Plan, but for those whose Unless is met. Before
	// each change it pushes how it is undone, from the state read before. When it
	// fails, what was done stays done, for the records to undo.
	Apply(context.Context, Host, Config, undo.Push) error
	// Readback asks the driver for each setting of the configuration. All of them
	// are returned, in the order of the names; one that has another value than
	// the wanted one is the error, a NotTaken.
	Readback(context.Context, Host, Config) ([]Setting, error)
}

// Step is one command of a plan.
type Step struct {
	// Argv is the command; no shell reads it. A word that begins with "phy-of:"
	// stands for the phy of that interface, by its number: "phy#0".
	Argv []string `json:"argv"`
	// Input is what the command reads from standard input.
	Input string `json:"input,omitempty"`
	// Settings are the names of those that it makes, if any.
	Settings []string `json:"settings,omitempty"`
	Why      string   `json:"why"`
	// Unless is the condition under which Apply leaves the step out; empty = never.
	Unless string `json:"unless,omitempty"`
}

// phyOf is the beginning of a word that stands for the phy of an interface.
// Interfaces have no colon in their names. It is its number that is put there:
// iw looks names up in /sys, which may be another namespace's.
const phyOf = "phy-of:"

// String writes the command so that it can be typed into a shell.
func (s Step) String() string {
	var b strings.Builder
	for i, w := range s.Argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if iface, ok := strings.CutPrefix(w, phyOf); ok {
			b.WriteString(`phy#"$(cat ` + quote("/sys/class/net/"+iface+"/phy80211/index") + `)"`)
		} else {
			b.WriteString(quote(w))
		}
	}
	if s.Input != "" {
		b.WriteString(" <<'END'\n" + s.Input + "END")
	}
	return b.String()
}

// quote makes a word of a POSIX shell of w.
func quote(w string) string {
	plain := func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:,=+@%", r)
	}
	if w != "" && !strings.ContainsFunc(w, plain) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// drivers is the table of what Config.Driver may say. A new driver is one line
// here and its files.
func drivers() []Driver {
	return []Driver{madwifi{settle: 5 * time.Second}, nl80211{settle: 10 * time.Second}, passive{Emulated}, passive{None}}
}

// Names lists the drivers.
func Names() []string {
	var out []string
	for _, d := range drivers() {
		out = append(out, d.Name())
	}
	return out
}

// Lookup returns the driver of a name.
func Lookup(name string) (Driver, error) {
	for _, d := range drivers() {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, &Error{Kind: Invalid, Driver: name, Setting: "driver", Wanted: name, Detail: "unknown driver",
		Remedy: "take one of " + strings.Join(Names(), ", ")}
}

// Plan returns what the configuration's driver would do.
func Plan(c Config) ([]Step, error) {
	d, err := Lookup(c.Driver)
	if err != nil {
		return nil, err
	}
	return d.Plan(c)
}

// Configure probes, applies and reads back. After an error the records that it
// pushed undo what was done.
func Configure(ctx context.Context, h Host, c Config, push undo.Push) ([]Setting, error) {
	d, err := Lookup(c.Driver)
	if err != nil {
		return nil, err
	}
	if _, err := d.Plan(c); err != nil {
		return nil, err
	}
	if err := d.Probe(ctx, h, c); err != nil {
		return nil, err
	}
	if err := d.Apply(ctx, h, c, push); err != nil {
		return nil, err
	}
	return d.Readback(ctx, h, c)
}
