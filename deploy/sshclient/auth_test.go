package sshclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshconfig"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
)

// configured makes a Config of a text.
func configured(t *testing.T, text string) *sshconfig.Config {
	t.Helper()
	env, err := sshconfig.OfProcess()
	if err != nil {
		t.Fatal(err)
	}
	env.Home = t.TempDir()
	c, err := sshconfig.Load(sshconfig.Files{User: sshtest.Write(t, filepath.Join(t.TempDir(), "config"), text)}, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A node of which the inventory says nothing but the name is reached as ssh_config
// says.
func TestSSHConfig(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	cfg := configured(t, fmt.Sprintf("Host n01\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n HostKeyAlias node-one\n BindAddress 127.0.0.1\n",
		s.Addr.Port(), s.User, s.Identity, s.KnownHosts))
	f := strings.Fields(s.KnownLine(t, s.HostKeys[0]))
	sshtest.Write(t, s.KnownHosts, "node-one "+f[1]+" "+f[2]+"\n")
	var told []string
	o := sshclient.Options{Config: cfg, Warn: func(node, w string) { told = append(told, node+": "+w) }}
	d := sshclient.New(o)
	for range 2 {
		c, err := d.Dial(within(t), &inventory.Node{Name: "n01"})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if len(told) != 1 || !strings.Contains(told[0], "n01: ") || !strings.Contains(told[0], "bindaddress") {
		t.Errorf("told %q", told)
	}
	_, err := sshclient.New(sshclient.Options{Config: configured(t, "ProxyCommand nc %h %p\n")}).Dial(within(t), &inventory.Node{Name: "n01"})
	wantReason(t, err, sshclient.Settings, "ProxyCommand", "config:1", "ProxyJump")
}

func TestLoginRefused(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	n := s.Node("n01")
	key := sshtest.Key(t, "ed25519", "")
	n.Identity = []string{key}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.AuthRefused, "n01", "the server accepts publickey", "tried "+key+" (ssh-ed25519 SHA256:", "authorized_keys of "+s.User)

	n.Identity = []string{filepath.Join(t.TempDir(), "none")}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.Identity, n.Identity[0], "inventory")

	open := sshtest.Write(t, filepath.Join(t.TempDir(), "open"), sshtest.Read(t, s.Identity))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	n.Identity = []string{open}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.Identity, "chmod 600 "+open)

	n.Identity = []string{sshtest.Write(t, filepath.Join(t.TempDir(), "text"), "hello\n")}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.Identity, "no private key")

	// ssh's own keys need not exist.
	n.Identity = nil
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "IdentityAgent none\n")}, n), sshclient.AuthRefused, "no key was offered", "ssh-add")
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "PubkeyAuthentication no\n")}, n), sshclient.AuthRefused, "PubkeyAuthentication is switched off")

	// The key after one that is refused is tried.
	n.Identity = []string{key, s.Identity}
	if err := tryDial(t, sshclient.Options{}, n); err != nil {
		t.Error(err)
	}
	n.User = "nobody-of-this-name"
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.AuthRefused, n.User)
}

func TestServerWithoutKeys(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Config: []string{"PubkeyAuthentication no", "PasswordAuthentication yes"}})
	wantReason(t, tryDial(t, sshclient.Options{}, s.Node("n01")), sshclient.AuthRefused, "the server accepts password", "no key was offered", "PubkeyAuthentication yes")
}

const phrase = "corr3ct horse"

// However many nodes want a key, its passphrase is asked for once.
func TestPassphraseIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, keyType := range []string{"ed25519", "rsa"} {
		key := sshtest.Key(t, keyType, phrase)
		s := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, key+".pub")}})
		n := s.Node("n01")
		n.Identity = []string{key}
		var asked, again atomic.Int32
		var given [][]byte
		d := sshclient.New(sshclient.Options{Timeout: patience, Passphrase: func(_ context.Context, file string, repeat bool) ([]byte, error) {
			if file != key {
				t.Errorf("asked for %s", file)
			}
			if asked.Add(1) == 1 {
				return []byte("wrong"), nil
			}
			if repeat {
				again.Add(1)
			}
			b := []byte(phrase)
			given = append(given, b)
			return b, nil
		}})
		for i, err := range sshclient.Each(within(t), 10, 10, func(int) error {
			c, err := d.Dial(within(t), n)
			if err == nil {
				c.Close()
			}
			return err
		}) {
			if err != nil {
				t.Errorf("%s, connection %d: %v", keyType, i, err)
			}
		}
		if asked.Load() != 2 || again.Load() != 1 {
			t.Errorf("%s: asked %d times, %d of them again", keyType, asked.Load(), again.Load())
		}
		for _, b := range given {
			if bytes.ContainsAny(b, phrase) {
				t.Errorf("the passphrase is still in memory: %q", b)
			}
		}
	}
}

// Somebody who thinks for longer than a login may take is waited for.
func TestPassphraseTakesItsTime(t *testing.T) {
	t.Parallel()
	key := sshtest.Key(t, "ed25519", phrase)
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, key+".pub")}})
	n := s.Node("n01")
	n.Identity = []string{key}
	o := sshclient.Options{Timeout: 4 * time.Second, Passphrase: func(context.Context, string, bool) ([]byte, error) {
		time.Sleep(5 * time.Second)
		return []byte(phrase), nil
	}}
	if err := tryDial(t, o, n); err != nil {
		t.Error(err)
	}
}

// And when it is the server that does not wait, there is another attempt, with the
// key that has been decrypted meanwhile.
func TestPassphraseOutlastsTheServer(t *testing.T) {
	t.Parallel()
	key := sshtest.Key(t, "ed25519", phrase)
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, key+".pub")}, Config: []string{"LoginGraceTime 3"}})
	n := s.Node("n01")
	n.Identity = []string{key}
	asked := 0
	o := sshclient.Options{Passphrase: func(context.Context, string, bool) ([]byte, error) {
		asked++
		time.Sleep(5 * time.Second)
		return []byte(phrase), nil
	}}
	if err := tryDial(t, o, n); err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	if n := strings.Count(s.Log(), "Connection from"); n != 2 {
		t.Errorf("%d connections: the server waited", n)
	}
}

func TestPassphraseIsNotThere(t *testing.T) {
	t.Parallel()
	key := sshtest.Key(t, "ed25519", phrase)
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, key+".pub")}})
	n := s.Node("n01")
	n.Identity = []string{key}
	answer := func(s string, err error) sshclient.Options {
		return sshclient.Options{Passphrase: func(context.Context, string, bool) ([]byte, error) { return []byte(s), err }}
	}
	for _, c := range []struct {
		o    sshclient.Options
		want string
	}{
		{sshclient.Options{}, key + " is encrypted, and there is nobody to ask for its passphrase; ssh-add " + key},
		{answer("", nil), "no passphrase was given"},
		{answer("s3cret guess", nil), "wrong passphrase, 3 times"},
		{answer("", errors.New("no terminal")), "no terminal"},
	} {
		err := tryDial(t, c.o, n)
		wantReason(t, err, sshclient.AuthRefused, c.want)
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a passphrase in %v", err)
		}
	}
	batch := answer(phrase, nil)
	batch.Config = configured(t, "BatchMode yes\n")
	wantReason(t, tryDial(t, batch, n), sshclient.AuthRefused, key+" is encrypted, and BatchMode")
	// The key after the one that cannot be decrypted is tried, and nobody is asked
	// for a key that the server does not want.
	n.Identity = []string{sshtest.Key(t, "ed25519", phrase), key, s.Identity}
	asked := 0
	o := sshclient.Options{Passphrase: func(_ context.Context, file string, _ bool) ([]byte, error) {
		if asked++; file != key {
			t.Errorf("asked for %s, which the server refuses", file)
		}
		return nil, nil
	}}
	if err := tryDial(t, o, n); err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// An old encrypted key without its public file says nothing about itself: it has to
// be decrypted to be offered.
func TestOldEncryptedKey(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "old")
	if out, err := exec.Command("ssh-keygen", "-q", "-m", "PEM", "-t", "rsa", "-b", "2048", "-N", phrase, "-f", key).CombinedOutput(); err != nil {
		t.Skipf("SKIP[unavailable: old key format] ssh-keygen: %v: %s", err, out)
	}
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, key+".pub")}})
	if err := os.Remove(key + ".pub"); err != nil {
		t.Fatal(err)
	}
	n := s.Node("n01")
	n.Identity = []string{key}
	if err := tryDial(t, sshclient.Options{Passphrase: func(context.Context, string, bool) ([]byte, error) { return []byte(phrase), nil }}, n); err != nil {
		t.Error(err)
	}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.AuthRefused, "is encrypted")
}

// sshAgent starts a real agent with keys and returns its socket.
func sshAgent(t *testing.T, keys ...string) string {
	t.Helper()
	testenv.Need(t, testenv.Program("ssh-agent"), testenv.Program("ssh-add"))
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, k := range keys {
		add := exec.Command("ssh-add", "-q", k)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return socket
}

func TestAgent(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	n := s.Node("n01")
	right := n.Identity[0]
	rsa := sshtest.Key(t, "rsa", "")
	r := sshtest.Start(t, sshtest.Options{Authorized: []string{sshtest.Read(t, rsa+".pub")}})
	nr := r.Node("n02")
	nr.Identity = nil
	agent := sshAgent(t, sshtest.Key(t, "ed25519", ""), rsa, right)
	t.Setenv("SSH_AUTH_SOCK", agent)

	n.Identity = nil
	if err := tryDial(t, sshclient.Options{Config: configured(t, "")}, n); err != nil {
		t.Errorf("the agent's key: %v", err)
	}
	if err := tryDial(t, sshclient.Options{Config: configured(t, "")}, nr); err != nil {
		t.Errorf("the agent's RSA key: %v", err)
	}
	// The private part is in the agent only; the configuration has the public one.
	public := sshtest.Write(t, filepath.Join(t.TempDir(), "id.pub"), sshtest.Read(t, right+".pub"))
	only := configured(t, "IdentitiesOnly yes\nIdentityFile "+strings.TrimSuffix(public, ".pub")+"\n")
	if err := tryDial(t, sshclient.Options{Config: only}, n); err != nil {
		t.Errorf("a public key whose private part the agent has: %v", err)
	}
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "IdentitiesOnly yes\n")}, n), sshclient.AuthRefused, "no key was offered")
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "IdentityAgent none\n")}, n), sshclient.AuthRefused, "no key was offered")
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "IdentityAgent /no/such/agent\n")}, n), sshclient.AuthRefused, "the agent cannot be reached", "/no/such/agent")
}

// An agent with more keys than the server lets one try needs the right one to come
// first: by the inventory, or as one of ssh_config's.
func TestAgentWithManyKeys(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Config: []string{"MaxAuthTries 4"}})
	n := s.Node("n01")
	right := n.Identity[0]
	var keys []string
	for range 5 {
		keys = append(keys, sshtest.Key(t, "ed25519", ""))
	}
	t.Setenv("SSH_AUTH_SOCK", sshAgent(t, append(keys, right)...))
	if err := tryDial(t, sshclient.Options{Config: configured(t, "")}, n); err != nil {
		t.Errorf("a key of the inventory: %v", err)
	}
	n.Identity = nil
	if err := tryDial(t, sshclient.Options{Config: configured(t, "IdentityFile "+right+"\n")}, n); err != nil {
		t.Errorf("a key of ssh_config that the agent has: %v", err)
	}
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "")}, n), sshclient.AuthRefused, "the agent's hopbed", "MaxAuthTries", "IdentitiesOnly")
}

// An agent that says nothing does not hold a login up beyond its time.
func TestAgentHangs(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Skipf("SKIP[unavailable: a socket in the test's folder] %v", err)
	}
	defer l.Close()
	t.Setenv("SSH_AUTH_SOCK", l.Addr().String())
	n := s.Node("n01")
	n.Identity = nil
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, ""), Timeout: time.Second}, n), sshclient.TimedOut, "not logged in within 1s")
}

// A user's certificate beside its key is offered, as by ssh.
func TestUserCertificate(t *testing.T) {
	ca, key := sshtest.Key(t, "ed25519", ""), sshtest.Key(t, "ed25519", "")
	if out, err := exec.Command("ssh-keygen", "-q", "-s", ca, "-I", "me", "-n", "somebody", key+".pub").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := sshtest.Start(t, sshtest.Options{Authorized: []string{"cert-authority,principals=\"somebody\" " + sshtest.Read(t, ca+".pub")}})
	n := s.Node("n01")
	n.Identity = []string{key}
	if err := tryDial(t, sshclient.Options{}, n); err != nil {
		t.Error(err)
	}
}
