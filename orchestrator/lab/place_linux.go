package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Place is the folder in which labs are known by their names: for each a file
// NAME.lab, which its keeper holds locked as long as it lives, and its log. It is
// the user's own, and private.
type Place struct{ dir string }

// Open returns the place below a state folder, which is made if need be.
func Open(state string) (*Place, error) {
	dir := filepath.Join(state, "labs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("labs: %w (set XDG_STATE_HOME to a folder that you may write)", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fmt.Errorf("labs: %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return nil, fmt.Errorf("labs: %s belongs to user %d and has the mode %04o: it must be yours, and yours alone (chmod 0700)", dir, st.Uid, st.Mode&0o7777)
	}
	return &Place{dir}, nil
}

// Dir is the folder.
func (p *Place) Dir() string { return p.dir }

var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName refuses what cannot name a lab.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("a lab cannot be named %q: want lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, at most 64", name)
	}
	return nil
}

const suffix = ".lab"

func (p *Place) file(name string) string { return filepath.Join(p.dir, name+suffix) }

// Log is the file that a lab's keeper writes its log to.
func (p *Place) Log(name string) string { return filepath.Join(p.dir, name+".log") }

// Taken says that a lab of this name stands.
type Taken struct{ Entry }

// Error names the lab and what to do.
func (t *Taken) Error() string {
	return fmt.Sprintf("the lab %s stands already, of %s, since %s: hopbed down %s, or give this one another name with --name",
		t.Name, t.Experiment, t.Since.Local().Format(time.DateTime), t.Name)
}

// Claim is a name that this process holds until it ends, or lets it go.
type Claim struct {
	place *Place
	name  string
	file  *os.File
}

// A List holds a file for as long as it takes to read it; a keeper holds it for good.
const (
	look  = 10 * time.Millisecond
	looks = 20
)

// Claim takes a name. before is what the file said of an earlier lab of the name
// whose keeper was killed, nil if there was none. The error is a *Taken when one
// stands.
func (p *Place) Claim(name string) (c *Claim, before *Entry, err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, err
	}
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(p.file(name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("lab %s: %w", name, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			e := readEntry(f, name)
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) && tries < looks {
				time.Sleep(look) // somebody may only be looking
				continue
			}
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, nil, &Taken{*e}
			}
			return nil, nil, fmt.Errorf("lab %s: lock: %w", name, err)
		}
		if !p.current(f, name) { // it was let go between opening and locking it
			f.Close()
			continue
		}
		if e := readEntry(f, name); e.Tag != "" {
			before = e
		}
		return &Claim{p, name, f}, before, nil
	}
}

// current tells whether the open file is the one that has the name.
func (p *Place) current(f *os.File, name string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Lstat(p.file(name))
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// readEntry reads what a file says; one that says nothing yet is a lab that is
// about to come up.
func readEntry(f *os.File, name string) *Entry {
	e := &Entry{}
	if b, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<10)); err == nil {
		_ = json.Unmarshal(b, e) // cut or empty: then only the name is known
	}
	e.Name = name
	return e
}

// Write says what the lab is.
func (c *Claim) Write(e Entry) error {
	b, err := json.Marshal(e)
	if err == nil {
		err = c.file.Truncate(0)
	}
	if err == nil {
		_, err = c.file.WriteAt(append(b, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("lab %s: %w", c.name, err)
	}
	return nil
}

// Release gives the name back.
func (c *Claim) Release() error {
	err := os.Remove(c.place.file(c.name))
	return errors.Join(err, c.file.Close())
}

// Leave gives the name back, and leaves the file for the next command to tell why
// the lab is no more.
func (c *Claim) Leave() error { return c.file.Close() }

// List returns the labs, by name: those that stand, and those of which nobody has
// been told yet that they ended.
func (p *Place) List() ([]Entry, error) {
	files, err := filepath.Glob(filepath.Join(p.dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("labs in %s: %w", p.dir, err)
	}
	slices.Sort(files)
	var out []Entry
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), suffix)
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("lab %s: %w", name, err)
		}
		// A shared lock, so that two that look do not take each other for the keeper.
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		e := readEntry(f, name)
		e.Alive = errors.Is(err, unix.EWOULDBLOCK)
		if e.Alive || e.Tag != "" {
			out = append(out, *e)
		}
		f.Close()
	}
	return out, nil
}

// Forget removes the file of a lab that has ended, when its end has been told.
func (p *Place) Forget(name string) error {
	c, _, err := p.Claim(name)
	if err != nil {
		return err
	}
	return c.Release()
}
