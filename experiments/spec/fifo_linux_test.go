package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe in place of a file is refused, and not waited for.
func TestPipeInPlaceOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipe: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Beside(filepath.Dir(path))("messages")
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "no plain file") {
			t.Errorf("read as %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("waits for somebody to write to the pipe")
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // lets it go
			f.Close()
		}
	}
}
