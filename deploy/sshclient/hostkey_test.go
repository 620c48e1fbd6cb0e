package sshclient_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
)

var hostKeyTypes = []string{"ed25519", "rsa", "ecdsa"}

// tryDial dials and closes.
func tryDial(t *testing.T, o sshclient.Options, n *inventory.Node) error {
	t.Helper()
	c, err := sshclient.New(patient(o)).Dial(within(t), n)
	if err == nil {
		err = c.Close()
	}
	return err
}

// A server with keys of several types shows the one that known_hosts has.
func TestHostKeyAlgorithmsFollowKnownHosts(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{HostKeys: hostKeyTypes})
	for i, pub := range s.HostKeys {
		n := s.Node("n01")
		n.KnownHosts = []string{sshtest.Write(t, filepath.Join(t.TempDir(), "known"), s.KnownLine(t, pub))}
		if err := tryDial(t, sshclient.Options{}, n); err != nil {
			t.Errorf("only the %s key is known: %v", hostKeyTypes[i], err)
		}
	}
}

func TestHostKeyIsKnown(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519"}})
	line := s.KnownLine(t, s.HostKeys[0])
	key := strings.Join(strings.Fields(line)[1:], " ")
	for name, text := range map[string]string{
		"comments and other hosts":       "# hosts\n\nother ssh-ed25519 broken\n" + line,
		"several names":                  "a,b,*.c," + s.Name() + " " + key + "\n",
		"a pattern":                      "[127.0.*]:* " + key + "\n",
		"another key before":             s.Name() + " " + other(t) + "\n" + line,
		"without the port":               "127.0.0.1 " + key + "\n",
		"without the port, among others": "127.0.0.1 " + other(t) + "\n127.0.0.1 " + key + "\n",
		"carriage returns":               strings.ReplaceAll(line, "\n", "\r\n"),
	} {
		n := s.Node("n01")
		n.KnownHosts = []string{sshtest.Write(t, filepath.Join(t.TempDir(), "known"), text)}
		if err := tryDial(t, sshclient.Options{}, n); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// ssh-keygen -H hashes the names.
	hashed := sshtest.Write(t, filepath.Join(t.TempDir(), "hashed"), "other.example "+other(t)+"\n"+line)
	if out, err := exec.Command("ssh-keygen", "-q", "-H", "-f", hashed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := sshtest.Read(t, hashed); strings.Contains(text, "127.0.0.1") || !strings.Contains(text, "|1|") {
		t.Fatalf("not hashed: %s", text)
	}
	n := s.Node("n01")
	n.KnownHosts = []string{filepath.Join(t.TempDir(), "none"), hashed}
	if err := tryDial(t, sshclient.Options{}, n); err != nil {
		t.Errorf("hashed: %v", err)
	}
}

// other is the key of no server.
func other(t *testing.T) string {
	t.Helper()
	f := strings.Fields(sshtest.Read(t, sshtest.Key(t, "ed25519", "")+".pub"))
	return f[0] + " " + f[1]
}

func TestHostKeyIsRefused(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519"}})
	line := s.KnownLine(t, s.HostKeys[0])
	key := strings.Join(strings.Fields(line)[1:], " ")
	print, err := exec.Command("ssh-keygen", "-lf", s.HostKeys[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := strings.Fields(string(print))[1]
	for _, c := range []struct {
		name, text string
		reason     sshclient.Reason
		words      []string
	}{
		{"nothing known", "", sshclient.HostKeyUnknown, []string{"n01", s.Name() + " is not in KNOWN", fingerprint, "ssh-keyscan -p", "127.0.0.1 >> KNOWN", "ssh_host_ed25519_key.pub"}},
		{"others known", "[10.9.8.7]:22 " + key + "\n", sshclient.HostKeyUnknown, nil},
		{"negated", "*,!127.0.0.1,!" + s.Name() + " " + key + "\n", sshclient.HostKeyUnknown, nil},
		{"another key without the port", "127.0.0.1 " + other(t) + "\n", sshclient.HostKeyUnknown, nil},
		{"a broken line", s.Name() + " ssh-ed25519 AAAAbroken\n", sshclient.HostKeyUnknown, []string{"KNOWN:1"}},
		{"an authority is no host key", "@cert-authority " + line, sshclient.HostKeyUnknown, nil},
		{"changed", "# first\n" + s.Name() + " " + other(t) + "\n", sshclient.HostKeyChanged, []string{"KNOWN:2", fingerprint, "ssh-keygen -R '" + s.Name() + "' -f KNOWN", "ssh-keyscan"}},
		{"another type", s.Name() + " " + ecdsa(t) + "\n", sshclient.HostKeyChanged, []string{"ecdsa-sha2-nistp256", "KNOWN:1", fingerprint}},
		{"revoked", line + "@revoked * " + key + "\n", sshclient.HostKeyRevoked, []string{"KNOWN:2", fingerprint}},
		{"revoked first", "@revoked " + s.Name() + " " + key + "\n" + line, sshclient.HostKeyRevoked, []string{"KNOWN:1"}},
	} {
		for _, accept := range []bool{false, true} {
			if accept && c.reason == sshclient.HostKeyUnknown {
				continue // that is what it is for
			}
			n := s.Node("n01")
			file := sshtest.Write(t, filepath.Join(t.TempDir(), "known"), c.text)
			n.KnownHosts = []string{file}
			err := tryDial(t, sshclient.Options{AcceptNew: accept}, n)
			t.Run(c.name, func(t *testing.T) {
				var words []string
				for _, w := range c.words {
					words = append(words, strings.ReplaceAll(w, "KNOWN", file))
				}
				wantReason(t, err, c.reason, words...)
				if got := sshtest.Read(t, file); got != c.text {
					t.Errorf("known_hosts was changed to %q", got)
				}
			})
		}
	}
	if !strings.Contains(s.Log(), "Connection from") || strings.Contains(s.Log(), "Accepted publickey") {
		t.Errorf("somebody logged in:\n%s", s.Log())
	}
}

// Many a lab's ssh_config keeps no keys: a remedy that wrote to /dev/null would help
// nobody.
func TestHostKeyThatIsKeptNowhere(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519"}})
	n := s.Node("n01")
	n.KnownHosts = []string{os.DevNull}
	err := tryDial(t, sshclient.Options{}, n)
	wantReason(t, err, sshclient.HostKeyUnknown, "127.0.0.1 >> lab_known_hosts, and name the file in the inventory (known-hosts: lab_known_hosts)")
	if strings.Contains(err.Error(), ">> "+os.DevNull) {
		t.Error(err)
	}
}

func ecdsa(t *testing.T) string {
	t.Helper()
	f := strings.Fields(sshtest.Read(t, sshtest.Key(t, "ecdsa", "")+".pub"))
	return f[0] + " " + f[1]
}

// With AcceptNew a key is written down once, and counts from then on.
func TestAcceptNew(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{HostKeys: hostKeyTypes})
	file := filepath.Join(t.TempDir(), "folder", "known")
	n := s.Node("n01")
	n.KnownHosts = []string{file}
	var told []string
	var mu sync.Mutex
	d := sshclient.New(sshclient.Options{Timeout: patience, AcceptNew: true, Warn: func(_, w string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, w)
	}})
	errs := sshclient.Each(within(t), 8, 8, func(int) error {
		c, err := d.Dial(within(t), n)
		if err == nil {
			c.Close()
		}
		return err
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	text := sshtest.Read(t, file)
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, s.Name()+" ") {
		t.Errorf("known_hosts is %q", text)
	}
	if len(told) != 1 || !strings.Contains(told[0], "SHA256:") {
		t.Errorf("told %q", told)
	}
	if err := tryDial(t, sshclient.Options{}, n); err != nil {
		t.Errorf("strictly, afterwards: %v", err)
	}
	// A last line without an end stays a line.
	sshtest.Write(t, file, "other "+other(t))
	if err := tryDial(t, sshclient.Options{AcceptNew: true}, n); err != nil {
		t.Error(err)
	}
	if text := sshtest.Read(t, file); strings.Count(text, "\n") != 2 || !strings.Contains(text, "\n"+s.Name()+" ") {
		t.Errorf("known_hosts is %q", text)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// A host with a certificate is known by its authority.
func TestHostCertificates(t *testing.T) {
	dir := t.TempDir()
	run := func(words ...string) {
		t.Helper()
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	ca, host := sshtest.Key(t, "ed25519", ""), sshtest.Key(t, "ecdsa", "")
	certified := func(name string, more ...string) string {
		pub := sshtest.Write(t, filepath.Join(dir, name+".pub"), sshtest.Read(t, host+".pub"))
		run(append(append([]string{"ssh-keygen", "-q", "-s", ca, "-I", "id"}, more...), pub)...)
		return filepath.Join(dir, name+"-cert.pub")
	}
	good := certified("good", "-h", "-n", "127.0.0.1,lab.example")
	wrong := certified("wrong", "-h", "-n", "elsewhere")
	expired := certified("expired", "-h", "-n", "127.0.0.1", "-V", "-2d:-1d")
	authority := func(pattern string) string {
		f := strings.Fields(sshtest.Read(t, ca+".pub"))
		return sshtest.Write(t, filepath.Join(t.TempDir(), "known"), "@cert-authority "+pattern+" "+f[0]+" "+f[1]+"\n")
	}
	for _, c := range []struct {
		name, cert, known string
		reason            sshclient.Reason
	}{
		{"good", good, authority("*"), ""},
		{"wrong name", wrong, authority("*"), sshclient.HostKeyChanged},
		{"expired", expired, authority("*"), sshclient.HostKeyChanged},
		{"authority for others", good, authority("*.other"), sshclient.HostKeyUnknown},
	} {
		s := sshtest.Start(t, sshtest.Options{HostKeys: []string{host}, Config: []string{"HostCertificate " + c.cert}})
		n := s.Node("n01")
		plain := n.KnownHosts[0]
		n.KnownHosts = []string{c.known}
		err := tryDial(t, sshclient.Options{}, n)
		if c.reason == "" && err != nil || c.reason != "" && sshclient.ReasonOf(err) != c.reason {
			t.Errorf("%s: %v", c.name, err)
		}
		// Who knows the key itself needs no authority.
		n.KnownHosts = []string{plain}
		if err := tryDial(t, sshclient.Options{}, n); err != nil {
			t.Errorf("%s, by its key: %v", c.name, err)
		}
	}
}
