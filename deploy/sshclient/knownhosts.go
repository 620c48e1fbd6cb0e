package sshclient

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hopbed/hopbed/deploy/sshconfig"
)

// maxKnownHosts bounds one known_hosts file.
const maxKnownHosts = 16 << 20

// knownHosts is what known_hosts files say, as sshd(8) describes them.
type knownHosts struct {
	lines []knownLine
	bad   []string // "file:line: why" of lines that mean nothing
}

type knownLine struct {
	patterns   []string // in lower case; of a host that is not hashed
	salt, hash []byte   // of one that is
	marker     string   // "", "@cert-authority", "@revoked"
	key        ssh.PublicKey
	at         string // "file:line"
}

// readKnownHosts reads files; those that do not exist are empty.
func readKnownHosts(files []string) (*knownHosts, error) {
	k := &knownHosts{}
	for _, f := range files {
		if err := k.read(f); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *knownHosts) read(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("known_hosts: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxKnownHosts))
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.Trim(lines.Bytes(), " \t\r")
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		at := path + ":" + strconv.Itoa(n)
		l, err := parseKnownLine(string(text))
		if err != nil {
			k.bad = append(k.bad, at+": "+err.Error())
			continue
		}
		l.at = at
		k.lines = append(k.lines, l)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("known_hosts: %s:%d: %w", path, n+1, err)
	}
	return nil
}

func parseKnownLine(s string) (l knownLine, err error) {
	f := strings.Fields(s)
	if strings.HasPrefix(f[0], "@") {
		if l.marker = f[0]; l.marker != "@cert-authority" && l.marker != "@revoked" {
			return l, fmt.Errorf("unknown marker %q", oneLine(l.marker))
		}
		f = f[1:]
	}
	if len(f) < 3 {
		return l, errors.New("not NAMES TYPE KEY")
	}
	blob, err := base64.StdEncoding.DecodeString(f[2])
	if err != nil {
		return l, errors.New("the key is not base64")
	}
	if l.key, err = ssh.ParsePublicKey(blob); err != nil {
		return l, fmt.Errorf("the key cannot be used: %w", err)
	}
	if l.key.Type() != f[1] {
		return l, fmt.Errorf("the key is of type %s, not %q", l.key.Type(), oneLine(f[1]))
	}
	if !strings.HasPrefix(f[0], "|") {
		l.patterns = strings.Split(strings.ToLower(f[0]), ",")
		return l, nil
	}
	parts := strings.Split(f[0], "|")
	if len(parts) != 4 || parts[1] != "1" {
		return l, errors.New("not a hashed name of the kind |1|salt|hash")
	}
	if l.salt, err = base64.StdEncoding.DecodeString(parts[2]); err == nil {
		l.hash, err = base64.StdEncoding.DecodeString(parts[3])
	}
	if err != nil {
		return l, errors.New("the hashed name is not base64")
	}
	return l, nil
}

func hashName(name string, salt []byte) []byte {
	m := hmac.New(sha1.New, salt)
	io.WriteString(m, name)
	return m.Sum(nil)
}

func (l *knownLine) match(name string) bool {
	if l.hash != nil {
		return hmac.Equal(hashName(name, l.salt), l.hash)
	}
	return sshconfig.MatchAny(name, l.patterns)
}

// of returns the lines of a host.
func (k *knownHosts) of(name string) []knownLine {
	var out []knownLine
	for _, l := range k.lines {
		if l.match(name) {
			out = append(out, l)
		}
	}
	return out
}

// knownName is how known_hosts writes a host.
func knownName(host string, port int) string {
	if port == 22 {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// addKnownHost appends a line to a file, which is made when it is not there.
func addKnownHost(path, name string, hashed bool, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if hashed {
		salt := make([]byte, sha1.Size)
		rand.Read(salt) // it never fails
		name = "|1|" + base64.StdEncoding.EncodeToString(salt) + "|" + base64.StdEncoding.EncodeToString(hashName(name, salt))
	}
	line := name + " " + key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal()) + "\n"
	// A last line that somebody left without an end must not swallow ours.
	if st, err := f.Stat(); err != nil {
		return err
	} else if st.Size() > 0 && st.Mode().IsRegular() {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, st.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line)
	return err
}

// hostPort joins what knownName takes apart.
func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
