//go:build unix

package sshclient

import (
	"fmt"
	"os"
	"syscall"
)

// private refuses a key of ours that others may read, as ssh does.
func private(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.IsDir() {
		return fmt.Errorf("%s is a folder, not a key", f.Name())
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if ok && int(sys.Uid) == os.Getuid() && st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others may read the private key %s (mode %04o), so that ssh and hopbed refuse it; chmod 600 %[1]s", f.Name(), st.Mode().Perm())
	}
	return nil
}
