package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
)

// Facts are what has to be known of a node before an agent can be there.
type Facts struct {
	Machine string // uname -m
	Kernel  string // uname -r
	Arch    string // GOARCH
	User    string
	UID     int
	Home    string
	// Controller is the controller as the node sees it, and Address the node's end of
	// that connection (SSH_CONNECTION); invalid where the server does not say.
	Controller netip.Addr
	Address    netip.Addr
	// Sudo says that the agent is run by sudo, without a password.
	Sudo bool
}

// reply begins the lines that our scripts write: what a node's login scripts print
// is no answer.
const reply = "hopbed:"

// preamble begins every script. Messages of tools are read, hence the locale;
// tools of administrators may not be in a user's PATH.
const preamble = `LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
export LC_ALL PATH
say() { printf 'hopbed:%s %s\n' "$1" "$2"; }
`

// examine prints the facts. Its argument says whether to try sudo: yes, no, or auto
// (where the user is not root). How the node's own programs are stored tells the
// byte order (byte 5 of an ELF file).
const examine = preamble + `say system "$(uname -s)"
say machine "$(uname -m)"
say kernel "$(uname -r)"
say order "$(dd if=/proc/self/exe bs=1 skip=5 count=1 2>/dev/null | tr '\001\002' 'lb')"
say user "$(id -un)"
say uid "$(id -u)"
say home "$HOME"
say connection "$SSH_CONNECTION"
want=$1
if [ "$want" = auto ]; then
  if [ "$(id -u)" = 0 ]; then want=no; else want=yes; fi
fi
if [ "$want" = yes ]; then
  if ! command -v sudo >/dev/null 2>&1; then say sudo missing
  elif m=$(sudo -n true 2>&1 </dev/null); then say sudo ok
  else say sudo "$(printf %s "$m" | tr '\n' ' ')"; fi
fi
say end ok
`

// Examine asks a node for its facts. Errors are *Error, or the connection's own.
func Examine(ctx context.Context, c sshclient.Client, n *inventory.Node) (Facts, error) {
	mode := "auto"
	if n.Sudo != nil && *n.Sudo {
		mode = "yes"
	} else if n.Sudo != nil {
		mode = "no"
	}
	answers, err := Script(ctx, c, n.Name, examine, mode)
	if err != nil {
		return Facts{}, err
	}
	return facts(n, answers)
}

func facts(n *inventory.Node, a map[string]string) (Facts, error) {
	f := Facts{Machine: a["machine"], Kernel: a["kernel"], User: a["user"], Home: a["home"]}
	if a["system"] != "Linux" {
		return f, &Error{Kind: KindSystem, Node: n.Name, What: "agents run on Linux", Because: fmt.Sprintf("the node's system is %q", a["system"]), Do: "take the node out of the inventory"}
	}
	var err error
	if f.UID, err = strconv.Atoi(a["uid"]); err != nil {
		return f, &Error{Kind: KindShell, Node: n.Name, What: "the node does not say who the user is", Because: fmt.Sprintf("id -u printed %q", a["uid"]), Do: "install coreutils or BusyBox's id"}
	}
	// client address, client port, server address, server port (sshd(8))
	if w := strings.Fields(a["connection"]); len(w) == 4 {
		f.Controller, _ = netip.ParseAddr(w[0]) // an invalid one stands for "not said"
		f.Address, _ = netip.ParseAddr(w[2])
	}
	if f.Arch, err = Arch(f.Machine, a["order"] == "b"); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Node = n.Name
		}
		return f, err
	}
	if said, tried := a["sudo"]; tried {
		if said != "ok" {
			return f, Privileges(n.Name, f.User, said)
		}
		f.Sudo = true
	} else if f.UID != 0 {
		return f, &Error{Kind: KindPrivileges, Node: n.Name, What: "the agent needs root", Because: fmt.Sprintf("the user is %q, and the inventory says `sudo: false`", f.User),
			Do: "take `sudo: false` out, or log in as root (`user: root`)"}
	}
	return f, nil
}

// Privileges explains why sudo does not run a program for the user without a
// question; said is what it wrote.
func Privileges(node, user, said string) *Error {
	said = strings.TrimSpace(said)
	e := &Error{Kind: KindPrivileges, Node: node, What: "the agent cannot become root", Because: said}
	switch {
	case said == "missing" || strings.Contains(said, "not found"):
		e.Because = fmt.Sprintf("the user is %q, and there is no sudo", user)
		e.Do = "log in as root (`user: root`), or install sudo"
	case strings.Contains(said, "must have a tty"):
		e.Do = fmt.Sprintf("on the node, add `Defaults:%s !requiretty` by visudo", user)
	case strings.Contains(said, "password") || strings.Contains(said, "authentication"):
		e.Because = "sudo wants a password: " + said
		fallthrough
	default:
		e.Do = fmt.Sprintf("on the node, put `%s ALL=(root) NOPASSWD: ALL` into /etc/sudoers.d/hopbed by visudo, or log in as root (`user: root`)", user)
	}
	return e
}

// IsSudo says whether the last words of a program that was to run by sudo are
// sudo's own.
func IsSudo(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "sudo: ") || strings.Contains(line, "sudo: command not found") || strings.Contains(line, "sudo: not found") || strings.Contains(line, "may not run sudo") {
			return true
		}
	}
	return false
}

// Dir is the agent's folder on the node.
func (f Facts) Dir(n *inventory.Node) (string, error) {
	dir := n.Dir
	if dir == "" {
		dir = "~/.cache/hopbed"
	}
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		if !path.IsAbs(f.Home) {
			return "", &Error{Kind: KindFolder, Node: n.Name, What: "no folder for the agent", Because: fmt.Sprintf("the user's home is %q", f.Home), Do: "give an absolute `dir:` in the inventory"}
		}
		dir = f.Home + rest
	}
	if !path.IsAbs(dir) {
		return "", &Error{Kind: KindFolder, Node: n.Name, What: fmt.Sprintf("the agent's folder %q is not absolute", dir), Do: "begin `dir:` with / or ~/ in the inventory"}
	}
	return path.Clean(dir), nil
}

// Script runs a POSIX shell script with arguments and returns what it said: lines
// "hopbed:KEY VALUE". The script must end with `say end ok`; where it does not, the
// answers are incomplete, which is an error. The text is constant: values go in as
// arguments.
func Script(ctx context.Context, c sshclient.Client, node, script string, args ...string) (map[string]string, error) {
	return ScriptAs(ctx, c, node, nil, script, args...)
}

// ScriptAs is Script, run by another program ("sudo", "-n").
func ScriptAs(ctx context.Context, c sshclient.Client, node string, by []string, script string, args ...string) (map[string]string, error) {
	argv := append(append(append([]string{}, by...), "sh", "-c", script, "hopbed"), args...)
	stdout, stderr, err := c.Run(ctx, nil, argv...)
	answers := parse(stdout)
	if err != nil {
		return answers, &scriptError{strings.TrimSpace(string(stderr)), err}
	}
	if answers["end"] != "ok" {
		return answers, &Error{Kind: KindShell, Node: node, What: "the node's shell did not do as it was told",
			Because: fmt.Sprintf("it wrote %q, %q", excerpt(stdout), excerpt(stderr)), Do: "the user needs a POSIX login shell (sh, dash, bash, BusyBox)"}
	}
	return answers, nil
}

// scriptError is a script that ended with a status, or was cut off.
type scriptError struct {
	stderr string
	err    error
}

// Error is the client's error, which names the node and has the last words.
func (s *scriptError) Error() string { return s.err.Error() }

func (s *scriptError) Unwrap() error { return s.err }

func parse(stdout []byte) map[string]string {
	answers := map[string]string{}
	for line := range bytes.Lines(stdout) {
		// A login script may leave its last line open.
		if _, after, ok := bytes.Cut(line, []byte(reply)); ok {
			key, value, _ := strings.Cut(strings.TrimRight(string(after), "\r\n"), " ")
			answers[key] = value
		}
	}
	return answers
}

func excerpt(b []byte) string {
	const most = 200
	b = bytes.TrimSpace(b)
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

// Privileged begins the argv of what has to run as root.
func (f Facts) Privileged() []string {
	if f.Sudo {
		return []string{"sudo", "-n", "--"}
	}
	return nil
}
