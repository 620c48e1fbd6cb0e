package about

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
)

// The questions, as first and only argument of the program.
const (
	FlagVersion = "--version" // "hopbed-agent VERSION, protocol N"
	FlagSHA256  = "--sha256"  // of the program's own file, in hexadecimal
)

// Version is the version of the module that this program was built from; "" if it
// was not built from a released or committed one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// Identity is what an agent says about itself.
type Identity struct {
	Version  string // "" = unknown
	Protocol int
}

// unknown stands for no version in what is printed.
const unknown = "unknown"

// String is the line that the program prints.
func (i Identity) String() string {
	v := i.Version
	if v == "" {
		v = unknown
	}
	return fmt.Sprintf("hopbed-agent %s, protocol %d", v, i.Protocol)
}

// Own is the identity of this program.
func Own() Identity { return Identity{Version(), proto.Version} }

// Parse reads what an agent printed.
func Parse(line string) (Identity, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "hopbed-agent ")
	version, number, ok2 := strings.Cut(rest, ", protocol ")
	n, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil || version == "" {
		return Identity{}, fmt.Errorf("%q is not what an agent says about its version", line)
	}
	if version == unknown || version == "(devel)" {
		version = ""
	}
	return Identity{version, n}, nil
}

// Main answers a question, if args (without the program's name) are one.
func Main(args []string, stdout, stderr io.Writer) (handled bool, status int) {
	if len(args) != 1 {
		return false, 0
	}
	var answer string
	switch args[0] {
	case FlagVersion:
		answer = Own().String()
	case FlagSHA256:
		sum, err := self()
		if err != nil {
			fmt.Fprintln(stderr, "hopbed-agent: its own file:", err)
			return true, 1
		}
		answer = sum
	default:
		return false, 0
	}
	if _, err := fmt.Fprintln(stdout, answer); err != nil {
		return true, 1
	}
	return true, 0
}

// self hashes the file that this process executes.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
