package store

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockAt is the byte that is locked: far behind the text about the holder, which
// stays readable (locks are mandatory here).
const lockAt = 1 << 30

// lockFile takes the file's lock for this process; busy says that another one
// has it.
func lockFile(f *os.File) (busy bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{Offset: lockAt})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// unlockFile closes the lock file and removes it: an open file cannot be removed
// here. Somebody who waits for it may have opened it meanwhile; it then stays,
// unlocked.
func unlockFile(f *os.File) error {
	err := f.Close()
	if rerr := os.Remove(f.Name()); err == nil && !errors.Is(rerr, windows.ERROR_SHARING_VIOLATION) {
		err = rerr
	}
	return err
}

// diskFull reports whether the volume of path has less room than SQLite needs
// for its shared-memory index.
func diskFull(path string) bool {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, nil, nil); err != nil {
		return false
	}
	return free < 64<<10
}
