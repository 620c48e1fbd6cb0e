package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
)

// bareHostPart is hopbed on a host that lacks something: it runs in a mount
// namespace of its own. Its arguments are the kind of host and hopbed's own.
const bareHostPart = "hopbed-test-bare-host"

const nobody = 65534

// hosts are the lacks. Each prepares the mount namespace; the machine's own
// devices and disks are not touched.
var hosts = map[string]struct {
	uid     uint32
	prepare func(dir string) error
}{
	"without TAP":                  {0, func(string) error { return noTUN() }},
	"nobody":                       {nobody, func(string) error { return tun(0o666) }},
	"nobody without TAP":           {nobody, func(string) error { return tun(0o600) }},
	"full disk for the database":   {0, func(dir string) error { return disk(dir, "db", 192) }},
	"no room for the database":     {0, func(dir string) error { return disk(dir, "db", 20) }},
	"full disk for the report":     {0, func(dir string) error { return disk(dir, "report", 8) }},
	"full disk for the journal":    {0, func(dir string) error { return disk(dir, "state", 4) }},
	"read-only disk":               {0, func(dir string) error { return readOnly(dir, "report") }},
	"nobody without its own state": {nobody, func(dir string) error { return errors.Join(tun(0o666), os.Mkdir(filepath.Join(dir, "state"), 0o700)) }},
}

func noTUN() error { return unix.Mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755") }

func tun(mode os.FileMode) error {
	return errors.Join(noTUN(), unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))), os.Chmod("/dev/net/tun", mode))
}

// disk mounts a small file system of so many KiB.
func disk(dir, name string, size int) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.MkdirAll(path, 0o755), unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%dk", size)))
}

func readOnly(dir, name string) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.MkdirAll(path, 0o755), unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY, ""))
}

func bareHost() int {
	dir, err := os.Getwd()
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	h := hosts[os.Args[1]]
	if err == nil {
		err = h.prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the host cannot be prepared:", err)
		return 99
	}
	cmd := reexec.Command(cliPart, os.Args[2:])
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: h.uid, Gid: h.uid}}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	// What was written to the small disks is copied out of the namespace.
	for _, name := range []string{"db", "report"} {
		if err := copyOut(filepath.Join(dir, name), filepath.Join(dir, "out-"+name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 97
		}
	}
	return cmd.ProcessState.ExitCode()
}

func copyOut(from, to string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from))
}

// on runs hopbed on a host that lacks something.
func on(t *testing.T, host, dir string, args ...string) *program {
	t.Helper()
	p := prepare(t, dir, args...)
	p.cmd.Args = append([]string{bareHostPart, host}, args...)
	p.cmd.Env = append(p.cmd.Env, reexec.Marker+"="+bareHostPart)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	p.launch()
	return p
}

var brief = []string{"1500ms", "300ms", "500ms", "100ms"}

// Without a TAP device nothing is created: no campaign, no file, no process.
func TestMissingTAPIsSaidBeforeAnythingIsMade(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	dir := experiment(t, brief...)
	p := on(t, "without TAP", dir, "run", "f.yaml")
	if code := p.end(); code != exitError || !strings.Contains(p.said(), "TAP devices unavailable") || !strings.Contains(p.said(), "modprobe tun") {
		t.Errorf("status %d:\n%s", code, p.said())
	}
	p.leavesNothing("f.yaml")
	d := on(t, "without TAP", dir, "doctor")
	if code := d.end(); code != exitError || !strings.Contains(d.stdout.String(), "modprobe tun") {
		t.Errorf("doctor: status %d:\n%s", code, d.stdout.String())
	}
}

// The README's command works without root where users may open /dev/net/tun
// and make user namespaces, and what it writes is the user's.
func TestRunWithoutRoot(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP, testenv.UserNS)
	mine := func(t *testing.T, changes ...string) string {
		dir := experiment(t, changes...)
		for _, p := range []string{dir, filepath.Join(dir, "f.yaml")} {
			if err := os.Chown(p, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Run("doctor", func(t *testing.T) {
		p := on(t, "nobody", mine(t), "doctor")
		if code := p.end(); code != exitOK || !strings.Contains(p.stdout.String(), "rootless") {
			t.Errorf("status %d:\n%s%s", code, p.stdout.String(), p.said())
		}
	})
	t.Run("device that only root may open", func(t *testing.T) {
		p := on(t, "nobody without TAP", mine(t), "run", "f.yaml")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "permission denied") || !strings.Contains(p.said(), "run as root") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml")
	})
	// Virtual time asks nothing of the host.
	t.Run("virtual time without a device", func(t *testing.T) {
		dir := mine(t, brief...)
		p := on(t, "nobody without TAP", dir, "run", "f.yaml", "--backend", "sim", "--report", "r.html")
		if code := p.end(); code != exitOK {
			t.Fatalf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "results.db", "r.html")
		runs, _ := stored(t, dir)
		for _, r := range runs {
			if !r.Valid || r.TraceHash == "" {
				t.Errorf("run %d: valid %v, trace %q", r.ID, r.Valid, r.TraceHash)
			}
		}
		if len(runs) == 0 {
			t.Error("no run is stored")
		}
	})
	t.Run("run", func(t *testing.T) {
		dir := mine(t, append(brief, "repeat: 1", "repeat: 1\nlimits: {reruns: 0}")...)
		p := on(t, "nobody", dir, "run", "f.yaml", "--report", "r.html")
		// Without real-time priority a busy host makes runs invalid.
		if code := p.end(); code != exitOK && code != exitNotValid {
			t.Fatalf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "results.db", "r.html")
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			var st unix.Stat_t
			if err = errors.Join(err, unix.Lstat(path, &st)); err == nil && st.Uid != nobody {
				t.Errorf("%s belongs to user %d", path, st.Uid)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if runs, _ := stored(t, dir); len(runs) != 2 || runs[0].Error != "" || runs[1].Error != "" {
			t.Errorf("%d runs:\n%s", len(runs), p.said())
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		dir := mine(t, long...)
		p := on(t, "nobody", dir, "run", "f.yaml")
		p.await("warm-up", 1)
		for _, m := range p.family() {
			if m.part == cliPart { // the program and itself in the user namespace, as a terminal does
				_ = syscall.Kill(m.pid, syscall.SIGTERM)
				break
			}
		}
		if code := p.end(); code != exitInterrupted {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "results.db")
	})
	t.Run("no place for the journal", func(t *testing.T) {
		p := on(t, "nobody without its own state", mine(t, brief...), "run", "f.yaml")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "XDG_STATE_HOME") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml")
	})
}

// A full disk ends the campaign with a clear message; what was stored stays.
func TestFullDisks(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.TAP)
	t.Run("database", func(t *testing.T) {
		p := on(t, "full disk for the database", experiment(t, brief...), "run", "f.yaml", "--db", "db/results.db")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "no space left for database") || !strings.Contains(p.said(), "--resume") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "db", "out-db")
		stored(t, filepath.Join(p.dir, "out-db")) // it can be opened and read
	})
	t.Run("new database", func(t *testing.T) {
		p := on(t, "no room for the database", experiment(t, brief...), "run", "f.yaml", "--db", "db/results.db")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "no space left for database") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "db", "out-db")
	})
	t.Run("report", func(t *testing.T) {
		p := on(t, "full disk for the report", experiment(t, append(brief, "[hop, tcp/cubic]", "[hop]")...), "run", "f.yaml", "--report", "report/r.html")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "write report/r.html: no space left") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		if !strings.Contains(p.stdout.String(), "hop") {
			t.Errorf("the results are not shown:\n%s", p.stdout.String())
		}
		if left := list(t, filepath.Join(p.dir, "out-report")); len(left) > 0 {
			t.Errorf("%v is left beside the report", left)
		}
		if runs, _ := stored(t, p.dir); valid(runs) > 1 || len(runs) == 0 {
			t.Errorf("%d runs are stored", len(runs))
		}
	})
	t.Run("journal", func(t *testing.T) {
		p := on(t, "full disk for the journal", experiment(t, append(brief, "nodes: 3", "nodes: 20")...), "run", "f.yaml")
		if code := p.end(); code != exitError || strings.Count(p.said(), "no space left") > 3 || !strings.Contains(p.said(), "XDG_STATE_HOME") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "results.db")
		if runs, _ := stored(t, p.dir); len(runs) != 2 || runs[0].Error != "" || runs[1].Error == "" {
			t.Errorf("%d runs are stored; want one, and then the one that found the disk full", len(runs))
		}
	})
	t.Run("read-only folder for the report", func(t *testing.T) {
		p := on(t, "read-only disk", experiment(t, brief...), "run", "f.yaml", "--report", "report/r.html")
		if code := p.end(); code != exitError || !strings.Contains(p.said(), "--report report/r.html") || !strings.Contains(p.said(), "read-only") {
			t.Errorf("status %d:\n%s", code, p.said())
		}
		p.leavesNothing("f.yaml", "report", "out-report") // and no database: nothing was run
	})
}
