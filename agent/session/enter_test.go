//go:build linux

package session_test

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lockAndEnter puts the calling goroutine's thread into a namespace for good;
// the thread dies with the goroutine.
func lockAndEnter(fd int) {
	runtime.LockOSThread()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
}
