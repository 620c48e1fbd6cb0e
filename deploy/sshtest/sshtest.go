package sshtest

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshd"
	"github.com/hopbed/hopbed/internal/testenv"
)

// Options are those of the server; Dir is the test's where it is empty, and a key
// that the server lets in is made where Authorized is empty.
type Options = sshd.Options

// Server is a server of a test. It ends with the test.
type Server struct {
	*sshd.Server
	Dir        string // of all its files
	User       string // who may log in: the current user
	Identity   string // a private key without passphrase that the server lets in
	KnownHosts string // a file with all its host keys
}

// Start starts a server, or skips the test where the host cannot run one.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	testenv.Need(t, testenv.SSHServer(sshd.Available))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Dir: o.Dir, User: me.Username, Identity: filepath.Join(o.Dir, "id"), KnownHosts: filepath.Join(o.Dir, "known_hosts")}
	if err := sshd.KeyGen(ctx, s.Identity, "ed25519", ""); err != nil {
		t.Fatal(err)
	}
	o.Authorized = append(o.Authorized[:len(o.Authorized):len(o.Authorized)], Read(t, s.Identity+".pub"))
	if s.Server, err = sshd.Start(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("sshd on %s said:\n%s", s.Addr, s.Log())
		}
	})
	var lines []string
	for _, f := range s.HostKeys {
		lines = append(lines, s.KnownLine(t, f))
	}
	Write(t, s.KnownHosts, strings.Join(lines, ""))
	return s
}

// Name is what known_hosts calls the server.
func (s *Server) Name() string {
	if s.Addr.Port() == 22 {
		return s.Addr.Addr().String()
	}
	return fmt.Sprintf("[%s]:%d", s.Addr.Addr(), s.Addr.Port())
}

// KnownLine is the line of known_hosts for a public host key.
func (s *Server) KnownLine(t testing.TB, public string) string {
	t.Helper()
	f := strings.Fields(Read(t, public))
	return s.Name() + " " + f[0] + " " + f[1] + "\n"
}

// Node is how the server is reached, as an inventory would say it.
func (s *Server) Node(name string) *inventory.Node {
	return &inventory.Node{
		Name: name, Address: s.Addr.Addr().String(), Port: int(s.Addr.Port()), User: s.User,
		Identity: []string{s.Identity}, Jump: []string{}, KnownHosts: []string{s.KnownHosts},
	}
}

// Key makes a key pair in a folder of the test and returns the private file.
func Key(t testing.TB, keyType, passphrase string) string {
	t.Helper()
	testenv.Need(t, testenv.Program("ssh-keygen"))
	file := filepath.Join(t.TempDir(), "id_"+keyType)
	if err := sshd.KeyGen(context.Background(), file, keyType, passphrase); err != nil {
		t.Fatal(err)
	}
	return file
}

// Read returns the text of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Write writes a file that only its owner may read.
func Write(t testing.TB, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
