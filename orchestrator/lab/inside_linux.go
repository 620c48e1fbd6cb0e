package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/reexec"
)

// ExecPart is the name under which this program enters a node and then becomes the
// user's program: the keeper starts it, and nothing of hopbed stays in the way.
const ExecPart = "hopbed-exec"

// The descriptors that it inherits after the standard ones.
const (
	fdSpec   = 3 // an entry, as JSON
	fdSpace  = 4 // the node's network namespace
	fdReport = 5 // takes one line if the program cannot be started
)

// entry is what it needs to know.
type entry struct {
	Node   string   `json:"node"`
	Argv   []string `json:"argv"`
	Dir    string   `json:"dir"`
	Umask  int      `json:"umask"`
	Folder string   `json:"folder"` // of the lab: files that stand in for those of /etc
	Over   []string `json:"over"`   // which of them
	Sysfs  bool     `json:"sysfs"`
	Probe  bool     `json:"probe,omitempty"` // end where the program would begin
}

// standIns are files that a node's programs see in place of the host's.
var standIns = []string{"hosts", "resolv.conf"}

// failure is why a program could not be started, with the status that a shell
// would give.
type failure struct {
	Text string `json:"text"`
	Code int    `json:"code"`
}

// The statuses of programs that did not start, as of shells and env(1).
const (
	StatusHopbed     = 125 // hopbed itself could not do it
	StatusNotRunable = 126
	StatusNotFound   = 127
)

// ExecMain is the part's main function: it returns only when it has failed.
func ExecMain() int {
	runtime.LockOSThread() // namespaces are the thread's
	report := os.NewFile(fdReport, "report")
	f := become()
	if f == nil {
		return 0
	}
	if b, err := json.Marshal(f); err == nil {
		_, _ = report.Write(b) // the keeper may be gone; then so are we
	}
	return f.Code
}

func become() *failure {
	fail := func(what string, err error) *failure {
		return &failure{fmt.Sprintf("%s: %v", what, err), StatusHopbed}
	}
	for _, fd := range []int{fdSpec, fdSpace, fdReport} {
		unix.CloseOnExec(fd)
	}
	var e entry
	if err := json.NewDecoder(os.NewFile(fdSpec, "entry")).Decode(&e); err != nil {
		return fail("the keeper's order", err)
	}
	if err := unix.Setns(fdSpace, unix.CLONE_NEWNET); err != nil {
		return fail("enter the network namespace of node "+e.Node, err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fail("a mount namespace for node "+e.Node, err)
	}
	if err := unix.Sethostname([]byte(e.Node)); err != nil {
		return fail("the host name "+e.Node, err)
	}
	if err := mounts(&e); err != nil {
		return fail("files of node "+e.Node, err)
	}
	if e.Probe {
		return nil
	}
	// The folder is entered now: the one of before is of another mount namespace.
	if err := os.Chdir(e.Dir); err != nil {
		return fail("the working directory", err)
	}
	unix.Umask(e.Umask)
	path, err := exec.LookPath(e.Argv[0])
	if err != nil {
		code := StatusNotFound
		if errors.Is(err, fs.ErrPermission) {
			code = StatusNotRunable
		}
		if e, ok := errors.AsType[*exec.Error](err); ok {
			err = fmt.Errorf("%s: %w", e.Name, e.Err)
		}
		return &failure{err.Error(), code}
	}
	if path, err = filepath.Abs(path); err != nil {
		return fail(e.Argv[0], err)
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, reexec.Marker+"=") })
	err = syscall.Exec(path, e.Argv, env)
	return &failure{fmt.Sprintf("%s: %v", path, err), StatusNotRunable}
}

// mounts gives the node's programs their own /etc/hosts, /etc/resolv.conf and
// /sys. What the host mounts later still appears, nothing goes the other way.
func mounts(e *entry) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts from the host: %w", err)
	}
	for _, name := range e.Over {
		if err := unix.Mount(filepath.Join(e.Folder, name), "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("put a file over /etc/%s: %w", name, err)
		}
	}
	if e.Sysfs {
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /sys: %w", err)
		}
	}
	return nil
}
