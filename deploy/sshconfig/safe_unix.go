//go:build unix

package sshconfig

import (
	"fmt"
	"os"
	"syscall"
)

// safe refuses a user's file that others own or may write to, as ssh does: it says
// where one connects.
func safe(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	owner := 0
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		owner = int(sys.Uid)
	}
	if owner != 0 && owner != os.Getuid() || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: others may write to it (owner %d, mode %04o), so that ssh and hopbed refuse it; chmod go-w %[1]s", f.Name(), owner, st.Mode().Perm())
	}
	return nil
}
