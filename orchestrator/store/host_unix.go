//go:build !windows

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the file's lock for this process; busy says that another one
// has it.
func lockFile(f *os.File) (busy bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err
}

// unlockFile removes the lock file while it is still held, and closes it.
func unlockFile(f *os.File) error {
	err := os.Remove(f.Name())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// diskFull reports whether the file system of path has less room than SQLite
// needs for its shared-memory index: an I/O error there means a full disk,
// though SQLite does not call it so.
func diskFull(path string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return false
	}
	return uint64(fs.Bavail)*uint64(fs.Bsize) < 64<<10
}
