package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
)

// A file system that is really full: a small tmpfs in a mount namespace of our
// own, which nobody else sees and which vanishes with the process.
func TestFullDisk(t *testing.T) {
	const inside = "HOPBED_TEST_FULL_DISK"
	if os.Getenv(inside) == "" {
		testenv.Need(t, testenv.Root)
		inNewMountNamespace(t, inside)
		return
	}

	ctx := context.Background()
	for _, size := range []string{"16k", "40k", "64k", "96k", "300k", "1m"} {
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
				t.Fatal(err)
			}
			defer syscall.Unmount(dir, syscall.MNT_DETACH)
			path := filepath.Join(dir, "results.db")

			full := func(what string, err error) {
				t.Helper()
				var dfe *DiskFullError
				if !errors.As(err, &dfe) {
					t.Fatalf("%s: not told that the disk is full: %v", what, err)
				}
			}
			s, err := Open(ctx, path)
			if err != nil {
				full("open", err) // too small for even an empty database
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a file without content is left: %v", err)
				}
				return
			}
			c := &Campaign{Name: "full", Backend: "sim", FileText: "x"}
			if _, err := s.CreateCampaign(ctx, c); err != nil {
				full("campaign", err)
				s.Close()
				return
			}
			saved := 0
			for err == nil && saved < 1000 {
				if err = s.SaveRun(ctx, record(c.ID, saved+1, 2000)); err == nil {
					saved++
				}
			}
			full("run", err)
			if n := counts(t, s)["runs"]; n != saved {
				t.Errorf("%d runs were saved, %d are there", saved, n)
			}
			integrity(t, s)
			s.Close() // may say that the log could not be folded in; the results are in it

			r, err := OpenRead(ctx, path)
			if err != nil {
				t.Fatalf("reading a full disk: %v", err)
			}
			defer r.Close()
			if n := counts(t, r)["runs"]; n != saved {
				t.Errorf("after reopening %d of %d runs are there", n, saved)
			}
			integrity(t, r)
		})
	}
}

// On a read-only file system a database that was closed properly can be read.
func TestReadOnlyPlace(t *testing.T) {
	const inside = "HOPBED_TEST_READ_ONLY"
	if os.Getenv(inside) == "" {
		testenv.Need(t, testenv.Root)
		inNewMountNamespace(t, inside)
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	path := filepath.Join(dir, "results.db")
	s := open(t, path)
	campaign(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRead(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if c, err := r.LatestCampaign(context.Background()); err != nil || c.Name != "two" {
		t.Errorf("campaign: %v, %v", c, err)
	}
	if _, err := Open(context.Background(), path); !errors.Is(err, syscall.EROFS) {
		t.Errorf("opening for writing: %v", err)
	}
}

// inNewMountNamespace runs the calling test again in a process with a mount
// namespace of its own, with the variable set.
func inNewMountNamespace(t *testing.T, variable string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
