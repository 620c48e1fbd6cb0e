package reexec

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Prefix begins the name of every part. A process that was started under such
// a name and finds no part for it must not go on as a controller.
const Prefix = "hopbed-"

// Table maps argv[0] to the main function of a part, which returns the exit
// status.
type Table map[string]func() int

// Dispatch runs the part that argv[0] names and exits with its status. A copy of
// the program under the path DIR/PART or DIR/PART-… plays the part that the
// environment variable Marker names as well. It
// returns when argv[0] names none, that is, in an ordinary start. It must come
// first in main or TestMain, before flags are parsed.
func Dispatch(t Table) {
	part, ok := t[os.Args[0]]
	if !ok {
		part, ok = t[copied(os.Args[0], os.Getenv(Marker))]
	}
	if ok {
		os.Exit(part())
	}
	// An exact name without a directory is a re-execution; a path is how a user
	// starts a program that may well be called "hopbed-agent".
	if strings.HasPrefix(os.Args[0], Prefix) && filepath.Base(os.Args[0]) == os.Args[0] && os.Getenv(Marker) != "" {
		fmt.Fprintf(os.Stderr, "%s: this program has no such part: its main or TestMain does not pass it to reexec.Dispatch\n", os.Args[0])
		os.Exit(2)
	}
}

// copied is the part that a copy of this program plays: where argv[0] cannot be
// chosen (a remote shell) it is a path, whose base is the part's name or begins
// with it and a dash, and the marker names the part, too. Both are asked for, since
// programs that a part starts inherit the marker.
func copied(argv0, marker string) string {
	base := filepath.Base(argv0)
	if base == argv0 || !strings.HasPrefix(marker, Prefix) || (base != marker && !strings.HasPrefix(base, marker+"-")) {
		return ""
	}
	return marker
}

// Marker is the environment variable that a re-executed process finds set to
// its part's name.
const Marker = "HOPBED_PART"

// Self is the path that a child process executes to become another instance of
// this program, even if the file was replaced or cannot be reached by name.
const Self = "/proc/self/exe"

// Command returns a command that runs this program under the name of a part.
// Its environment is the caller's with env added.
func Command(part string, args []string, env ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: Self,
		Args: append([]string{part}, args...),
		Env:  append(append(os.Environ(), env...), Marker+"="+part),
	}
}
