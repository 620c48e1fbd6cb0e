package tc

import (
	"fmt"
	"strings"
)

// NotApplied says that the kernel took a setting and has another value.
type NotApplied struct {
	Interface string
	What      string // the setting: "netem 4100: delay"
	Wanted    string
	Got       string
}

// Error gives all of it.
func (e *NotApplied) Error() string {
	return fmt.Sprintf("%s: %s: wanted %s, the kernel has %s", e.Interface, e.What, e.Wanted, e.Got)
}

// Unlike says that the kernel cannot do a setting as netem/pipe does it.
type Unlike struct {
	What    string // the setting: "trace"
	Because string
	Do      string // what to do instead
}

// Error gives all three parts.
func (e *Unlike) Error() string {
	return fmt.Sprintf("the kernel's emulation has no %s like this program's own: %s; %s", e.What, e.Because, e.Do)
}

// Foreign says that an interface has a queueing discipline that was made by
// somebody else and that could not be restored as it was.
type Foreign struct {
	Interface string
	Kind      string
	Handle    string
}

// Error names it and the remedy.
func (e *Foreign) Error() string {
	return fmt.Sprintf("%s: has the queueing discipline %s %s of somebody else's with classes or filters, which could not be restored: remove it first (tc qdisc del dev %s root)",
		e.Interface, e.Kind, e.Handle, e.Interface)
}

// invalid is a wrong setting.
func invalid(l *Link, dir string, class int, format string, args ...any) error {
	name := l.Interface
	if dir != "" {
		name = strings.TrimSpace(fmt.Sprintf("%s %s class %d", name, dir, class))
	}
	return fmt.Errorf("tc: %s: %s", name, fmt.Sprintf(format, args...))
}
