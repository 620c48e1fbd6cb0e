package journal

import (
	"context"
	"testing"

	"github.com/hopbed/hopbed/internal/procfs"
)

// Requirement: the journal of one tag is cleaned, another dead controller's is not
// looked at, and none where there is none.
func TestCleanOne(t *testing.T) {
	dir := t.TempDir()
	mine, other := startController(t, dir), startController(t, dir)
	mine.kill()
	other.kill()
	c, err := CleanOne(context.Background(), dir, mine.tag)
	if err != nil || c == nil || c.Tag != mine.tag || len(c.Removed) != 4 || len(c.Left) > 0 {
		t.Errorf("%+v, %v; want two processes, a directory and a file", c, err)
	}
	if procfs.Running(mine.child) || !procfs.Running(other.child) {
		t.Error("the wrong one was cleaned")
	}
	if c, err := CleanOne(context.Background(), dir, mine.tag); c != nil || err != nil {
		t.Errorf("a second time: %+v, %v", c, err)
	}
	for _, tag := range []string{"", "../x"} {
		if _, err := CleanOne(context.Background(), dir, tag); err == nil {
			t.Errorf("the tag %q was taken", tag)
		}
	}
	if _, err := CleanOne(context.Background(), dir, other.tag); err != nil {
		t.Error(err)
	}
}
