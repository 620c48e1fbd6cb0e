package lane

import "fmt"

// Unavailable says that this host cannot run a kernel lane, why, and what the
// user can do about it.
type Unavailable struct {
	What    string // the missing ability
	Because string // the fact that was found
	Do      string // the remedy
	Err     error  // the underlying error, if any
}

// Error gives all three parts.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("%s unavailable: %s; %s", u.What, u.Because, u.Do)
}

// Unwrap returns the underlying error.
func (u *Unavailable) Unwrap() error { return u.Err }

// Died says that the lane ended without an exit status of its program: the
// kernel did not boot, panicked, or ran out of time.
type Died struct {
	Cause     string
	KernelLog string // its last lines
}

// Error gives the cause and the kernel's last words.
func (d *Died) Error() string {
	if d.KernelLog == "" {
		return "kernel lane: " + d.Cause + "; the kernel said nothing"
	}
	return "kernel lane: " + d.Cause + "; the kernel's last lines:\n" + d.KernelLog
}
