package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
)

// Part is the name under which programs that hold the agent beside others play it
// (internal/reexec), and PartVariable the environment variable that tells them to.
const (
	Part         = "hopbed-agent"
	PartVariable = "HOPBED_PART"
)

// Placed is an agent on a node.
type Placed struct {
	Path     string // there
	SHA256   string
	Uploaded bool // by this call; else it was there already
	Identity about.Identity
}

// exit statuses of the scripts, in the order of the steps.
const (
	exitFolder    = 73 // the folder cannot be made
	exitWrite     = 74 // the file cannot be written
	exitInterrupt = 75
	exitShort     = 76 // it is not as long as what was sent
	exitHash      = 77
	exitRun       = 78 // it does not run
	exitTrust     = 79 // the folder is not the user's alone
)

// common are the functions of both scripts: $1 folder, $2 file name, $3 size, $4
// SHA-256. A node without a tool for the hash asks the agent itself, which finds
// damage, though not malice.
const common = preamble + `d=$1 n=$2 size=$3 want=$4
HOPBED_PART=hopbed-agent
export HOPBED_PART
umask 077
sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
  elif busybox sha256sum </dev/null >/dev/null 2>&1; then busybox sha256sum <"$1"
  elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r <"$1"
  else "$1" --sha256 2>/dev/null; fi | { read -r s rest; printf %s "$s"; }
}
length() { wc -c <"$1" | tr -d ' '; }
trusted() {
  [ -O "$1" ] || { echo "it belongs to somebody else: $(ls -ld "$1")" >&2; exit 79; }
  case $(ls -ld "$1") in
  ?????w*|????????w*) echo "others may write to it: $(ls -ld "$1")" >&2; exit 79;;
  esac
}
runs() {
  v=$("$1" --version 2>&1) || { s=$?; printf 'status %s: %s\n' "$s" "$v" >&2; exit 78; }
  say version "$v"
}
`

// look says whether the agent is there.
const look = common + `if [ ! -f "$d/$n" ] || [ "$(length "$d/$n")" != "$size" ] || [ "$(sum "$d/$n")" != "$want" ]; then
  say state absent
else
  trusted "$d"
  trusted "$d/$n"
  runs "$d/$n"
  say state present
fi
say end ok
`

// upload takes the agent from standard input; $5 makes the temporary file's name
// its own. Input that ended early is not taken for the whole, and nothing is left of
// it. An agent is put in place by a rename, so that one that runs stays what it is.
// Of older ones the newest is kept, for another controller.
const upload = common + `t=$d/$n.$5.part
mkdir -p "$d" || exit 73
trusted "$d"
trap 'rm -f "$t"' 0
trap 'exit 75' 1 2 13 15
cat >"$t" || exit 74
got=$(length "$t")
[ "$got" = "$size" ] || { echo "$got of $size bytes arrived" >&2; exit 76; }
chmod 700 "$t" || exit 74
got=$(sum "$t")
[ "$got" = "$want" ] || { echo "SHA-256 is $got" >&2; exit 77; }
runs "$t"
mv -f "$t" "$d/$n" || exit 74
say state uploaded
find "$d" -name 'hopbed-agent-*.part' -mmin +60 -exec rm -f '{}' ';' 2>/dev/null
others=0
ls -t "$d" | while read -r f; do
  case $f in
  "$n"|*.part) ;;
  hopbed-agent-*) others=$((others+1)); [ $others -le 1 ] || rm -f "$d/$f";;
  esac
done
say end ok
`

// Look says whether the agent is on the node, whole and able to run there; nothing
// is changed. Errors are *Error, or the connection's own.
func Look(ctx context.Context, c sshclient.Client, n *inventory.Node, f Facts, b *Binary) (p Placed, there bool, err error) {
	dir, err := f.Dir(n)
	if err != nil {
		return p, false, err
	}
	answers, err := Script(ctx, c, n.Name, look, dir, b.Name(), strconv.FormatInt(b.Size, 10), b.SHA256)
	if err != nil {
		return p, false, explain(n, dir, b, err)
	}
	if answers["state"] != "present" {
		return p, false, nil
	}
	p, err = placed(n, dir, b, answers)
	return p, err == nil, err
}

// Push puts the agent on the node unless it is there. After an error nothing of it
// is left. Errors are *Error, or the connection's own.
func Push(ctx context.Context, c sshclient.Client, n *inventory.Node, f Facts, b *Binary) (Placed, error) {
	if b.Arch != f.Arch {
		return Placed{}, &Error{Kind: KindArchitecture, Node: n.Name, What: "the agent is for another processor", Because: fmt.Sprintf("the node has %s (%s), the program is for %s", f.Arch, f.Machine, b.Arch)}
	}
	if p, there, err := Look(ctx, c, n, f, b); there || (err != nil && !replaceable(err)) {
		return p, err
	}
	dir, err := f.Dir(n)
	if err != nil {
		return Placed{}, err
	}
	file, err := os.Open(b.Path)
	if err != nil {
		return Placed{}, fmt.Errorf("agent for %s: %w", b.Arch, err)
	}
	defer file.Close()
	var nonce [4]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return Placed{}, err
	}
	stdout, stderr, err := c.Run(ctx, file, "sh", "-c", upload, "hopbed",
		dir, b.Name(), strconv.FormatInt(b.Size, 10), b.SHA256, hex.EncodeToString(nonce[:]))
	if err != nil {
		return Placed{}, explain(n, dir, b, &scriptError{strings.TrimSpace(string(stderr)), err})
	}
	answers := parse(stdout)
	if answers["state"] != "uploaded" {
		return Placed{}, &Error{Kind: KindShell, Node: n.Name, What: "the upload of the agent ended without a word", Because: fmt.Sprintf("the node wrote %q, %q", excerpt(stdout), excerpt(stderr)),
			Do: "the user needs a POSIX login shell (sh, dash, bash, BusyBox)"}
	}
	p, err := placed(n, dir, b, answers)
	p.Uploaded = err == nil
	if err != nil {
		_, _, rm := c.Run(ctx, nil, "rm", "-f", path.Join(dir, b.Name()))
		return p, errors.Join(err, rm)
	}
	return p, nil
}

// replaceable: an agent that is there and does not run may be put there again, and
// the second try says why.
func replaceable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == KindDamaged
}

func placed(n *inventory.Node, dir string, b *Binary, answers map[string]string) (Placed, error) {
	p := Placed{Path: path.Join(dir, b.Name()), SHA256: b.SHA256}
	var err error
	if p.Identity, err = about.Parse(answers["version"]); err != nil {
		return p, &Error{Kind: KindVersion, Node: n.Name, What: "the program is no agent", Because: err.Error(), Err: err, Do: "build it again: see `task agents`"}
	}
	if own := about.Own(); p.Identity.Protocol != own.Protocol || differ(p.Identity.Version, own.Version) {
		return p, mismatch(n.Name, p.Identity, b.Path)
	}
	return p, nil
}

// explain turns the end of a script into what it means for people.
func explain(n *inventory.Node, dir string, b *Binary, err error) error {
	var exit *sshclient.ExitError
	var s *scriptError
	if !errors.As(err, &exit) || !errors.As(err, &s) {
		return err
	}
	e := &Error{Node: n.Name, Because: s.stderr, Err: err}
	has := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(s.stderr, t) {
				return true
			}
		}
		return false
	}
	const elsewhere = "or give another `dir:` in the inventory"
	switch {
	case has("No space left", "Disk quota exceeded", "disk full"):
		e.Kind, e.What = KindDiskFull, fmt.Sprintf("no space for the agent in %s", dir)
		e.Do = fmt.Sprintf("free %d MB there, %s (/tmp is memory on many routers)", b.Size>>20+1, elsewhere)
	case exit.Status == exitTrust:
		e.Kind, e.What, e.Do = KindFolder, fmt.Sprintf("the agent's folder %s is not the user's alone: what others can replace is not run as root", dir), "chown and chmod 700 it, "+elsewhere
	case exit.Status == exitFolder, exit.Status == exitWrite:
		e.Kind, e.What, e.Do = KindFolder, fmt.Sprintf("the agent cannot be written to %s", dir), "make the folder writable for the user, "+elsewhere
	case exit.Status == exitShort, exit.Status == exitHash:
		e.Kind, e.What, e.Do = KindDamaged, "the agent did not arrive as it was sent", "try again; if it happens again, look at the node's memory and disk"
	case exit.Status == exitRun:
		runError(e, dir, b, has)
	default:
		return err
	}
	return e
}

func runError(e *Error, dir string, b *Binary, has func(...string) bool) {
	switch {
	case has("Permission denied"):
		e.Kind, e.What = KindNoExec, fmt.Sprintf("programs in %s cannot be executed", dir)
		e.Do = "it is mounted noexec, or a security module forbids it: give another `dir:` in the inventory"
	case !b.Static && has("not found", "No such file"):
		e.Kind, e.What = KindNoAgent, "the agent needs a C library that the node does not have"
		e.Do = fmt.Sprintf("use a static agent: put %s%s beside hopbed (`task agents` builds it)", FilePrefix, b.Arch)
	case has("xec format", "cannot execute", "yntax error", "llegal instruction", "not found", "nexpected"):
		e.Kind, e.What = KindArchitecture, fmt.Sprintf("the node does not run programs for %s", b.Arch)
		e.Do = "its processor is older or other than it says: tell us what /proc/cpuinfo and `uname -a` say there"
	default:
		e.Kind, e.What = KindVersion, "the agent does not say its version"
		e.Do = "build it again: see `task agents`"
	}
	e.Because = string(bytes.TrimSpace([]byte(e.Because)))
}

// Clean has the agent put back what killed ones left on the node, and returns what
// it said.
func Clean(ctx context.Context, c sshclient.Client, f Facts, p Placed) (string, error) {
	stdout, stderr, err := c.Run(ctx, nil, append(f.Privileged(), "env", PartVariable+"="+Part, p.Path, "--clean")...)
	return string(bytes.TrimSpace(append(stdout, stderr...))), err
}
