package tap

import "fmt"

// Unavailable says that this host cannot do something that the emulation
// needs, why, and what the user can do about it. It is the same type for every
// such lack, so that `hopbed doctor`, the command line and the tests can tell
// "cannot here" from "failed".
type Unavailable struct {
	What    string // the missing ability: "TAP devices", "user namespaces"
	Because string // the fact that was found: "/dev/net/tun: permission denied"
	Do      string // the remedy, as a sentence or a command
	Err     error  // the underlying error, if any
}

// Error gives all three parts.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s unavailable: %s; %s", u.What, u.Because, u.Do)
}

// Unwrap returns the underlying error.
func (u *Unavailable) Unwrap() error { return u.Err }
