package sshconfig_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/sshconfig"
)

var env = sshconfig.Env{
	Home: "/home/me", User: "me", UID: 1000, LocalHost: "box.lab",
	Lookup: func(name string) (string, bool) {
		v, ok := map[string]string{"SSH_AUTH_SOCK": "/run/agent", "OTHER": "/run/other"}[name]
		return v, ok
	},
	HomeOf: func(user string) (string, error) {
		if user == "bob" {
			return "/home/bob", nil
		}
		return "", errors.New("no such user " + user)
	},
}

func load(t *testing.T, text string) *sshconfig.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sshconfig.Load(sshconfig.Files{User: file}, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func resolve(t *testing.T, text, host string) *sshconfig.Host {
	t.Helper()
	h, err := load(t, text).Resolve(host, sshconfig.Override{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What is not followed is said, with its line; what asks for what hopbed does
// anyway, or does not matter, is not.
func TestWhatIsNotFollowedIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"CertificateFile /x":                          "config:1: certificatefile /x is not followed: keys are offered without",
		"PKCS11Provider /usr/lib/x.so":                "load the token into an agent: ssh-add -s PROVIDER",
		"CanonicalizeHostname yes":                    "canonicalizehostname yes is not followed: the name is used as it is",
		"KnownHostsCommand /bin/x %H":                 "host keys come from files",
		"BindAddress 10.0.0.1":                        "the system chooses the local address",
		"BindInterface eth1":                          "the system chooses the interface",
		"VerifyHostKeyDNS yes":                        "not by DNS",
		"KbdInteractiveAuthentication yes":            "keys alone are offered",
		"PreferredAuthentications password,publickey": "keys alone are offered",
		"StrictHostKeyChecking no":                    "stricthostkeychecking no is not followed: host keys are always checked",
		"NoHostAuthenticationForLocalhost yes":        "host keys are always checked",
		"CheckHostIP yes":                             "looked up by name",
		"RequiredRSASize 4096":                        "1024 bits",
		"FrobnicateHost yes":                          "config:1: frobnicatehost: hopbed does not know this keyword",
		"Match exec \"true\"\n User x":                "config:1: Match exec is not evaluated: the lines of this block are left out for h",
		"Match host h exec true\n User x":             "Match exec is not evaluated",
		"Match tagged x\n User y":                     "Match tagged is not evaluated",
	} {
		h := resolve(t, text+"\n", "h")
		if len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, h.Warnings, want)
		}
		if h.User != "me" {
			t.Errorf("%s: a block that is not evaluated set the user %s", text, h.User)
		}
	}
	quiet := resolve(t, "CertificateFile none\nCanonicalizeHostname no\nPreferredAuthentications publickey\nPasswordAuthentication no\nVerifyHostKeyDNS no\n"+
		"ForwardAgent yes\nControlMaster auto\nMatch host other exec true\n User x\nHost other\n BindAddress 1.2.3.4\n ProxyCommand x\n", "h")
	if len(quiet.Warnings) != 0 {
		t.Errorf("%v", quiet.Warnings)
	}
}

func TestWhatCannotBeLeftOutIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"ProxyCommand nc %h %p":    "config:1: ProxyCommand is unavailable, because hopbed starts no program to reach a host; use ProxyJump for h",
		"RevokedHostKeys /etc/krl": "config:1: RevokedHostKeys is unavailable",
	} {
		_, err := load(t, text+"\n").Resolve("h", sshconfig.Override{})
		var u *sshconfig.Unsupported
		if !errors.As(err, &u) || u.Pos.Line != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// Who says what lies between is not told of what the file has for that.
	h, err := load(t, "ProxyCommand nc %h %p\n").Resolve("h", sshconfig.Override{Jump: []string{"g"}, Port: 5, User: "u"})
	if err != nil || !reflect.DeepEqual(h.ProxyJump, []string{"g"}) || h.Port != 5 || h.User != "u" {
		t.Errorf("%+v, %v", h, err)
	}
	h, err = load(t, "ProxyJump g\n").Resolve("h", sshconfig.Override{Jump: []string{}})
	if err != nil || len(h.ProxyJump) != 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestPathsAndAgent(t *testing.T) {
	h := resolve(t, "IdentityFile ~bob/.ssh/%u-%L\nIdentityAgent %d/agent\n", "h")
	if h.Identities[0].File != "/home/bob/.ssh/me-box" || h.Agent != "/home/me/agent" {
		t.Errorf("%+v", h)
	}
	for text, want := range map[string]string{"": "/run/agent", "IdentityAgent SSH_AUTH_SOCK\n": "/run/agent", "IdentityAgent $OTHER\n": "/run/other", "IdentityAgent none\n": "", "IdentityAgent ${OTHER}/x\n": "/run/other/x"} {
		if h := resolve(t, text, "h"); h.Agent != want {
			t.Errorf("%q: agent %q, want %q", text, h.Agent, want)
		}
	}
	if _, err := load(t, "IdentityFile ~nobody-here/x\n").Resolve("h", sshconfig.Override{}); err == nil || !strings.Contains(err.Error(), "config:1: IdentityFile") {
		t.Errorf("%v", err)
	}
}

func TestTheUsersFileComesFirst(t *testing.T) {
	dir := t.TempDir()
	user, system := filepath.Join(dir, "user"), filepath.Join(dir, "system")
	os.WriteFile(user, []byte("Host h\n User mine\n"), 0o600)
	os.WriteFile(system, []byte("Host *\n User theirs\n Port 7\n"), 0o644)
	c, err := sshconfig.Load(sshconfig.Files{User: user, System: system}, env)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := c.Resolve("h", sshconfig.Override{}); err != nil || h.User != "mine" || h.Port != 7 {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := c.Resolve("x", sshconfig.Override{}); err != nil || h.User != "theirs" {
		t.Errorf("%+v, %v", h, err)
	}
	// A file that others may write to says where one connects: it is refused.
	os.Chmod(user, 0o666)
	if _, err := sshconfig.Load(sshconfig.Files{User: user}, env); err == nil || !strings.Contains(err.Error(), "chmod go-w "+user) {
		t.Errorf("%v", err)
	}
	if _, err := sshconfig.Load(sshconfig.Files{User: user, Lax: true}, env); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := sshconfig.Load(sshconfig.Files{User: filepath.Join(dir, "none"), System: filepath.Join(dir, "no", "ne")}, env); err != nil {
		t.Errorf("files that do not exist: %v", err)
	}
	if _, err := sshconfig.Load(sshconfig.Files{User: dir}, env); err == nil {
		t.Error("a folder was read")
	}
}

func TestParseJump(t *testing.T) {
	for s, want := range map[string]sshconfig.Jump{
		"g": {Host: "g"}, "u@g": {Host: "g", User: "u"}, "g:22": {Host: "g", Port: 22}, "u@v@g:1": {Host: "g", User: "u@v", Port: 1},
		"fe80::1": {Host: "fe80::1"}, "[fe80::1]": {Host: "fe80::1"}, "u@[::1]:65535": {Host: "::1", User: "u", Port: 65535}, "ssh://u@g:2/": {Host: "g", User: "u", Port: 2},
	} {
		got, err := sshconfig.ParseJump(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		if again, err := sshconfig.ParseJump(got.String()); err != nil || again != got {
			t.Errorf("%s: %s is read as %+v, %v", s, got, again, err)
		}
	}
	for _, s := range []string{"", "@g", "g:", "g:0", "g:65536", "g:x", "[::1", "[::1]x", "[::1]:", "-oX", "a b", "g;reboot", "$(x)", "a/b", "`x`"} {
		if got, err := sshconfig.ParseJump(s); err == nil {
			t.Errorf("%q is taken for %+v", s, got)
		}
	}
}

// FuzzResolve: whatever the file, reading ends, and what is told is plain text with
// a place.
func FuzzResolve(f *testing.F) {
	for _, c := range cases {
		f.Add(c.text, c.hosts[0])
	}
	f.Add("Host *\nMatch exec \x1b[2J\n\x07Foo \x1b\n", "h")
	f.Fuzz(func(t *testing.T, text, host string) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", "/nonexistent")), 0o600); err != nil {
			t.Fatal(err)
		}
		// Nothing outside is to be read, whatever is included.
		if strings.Contains(strings.ToLower(text), "include") {
			return
		}
		c, err := sshconfig.Load(sshconfig.Files{User: file}, env)
		if err != nil {
			if !strings.Contains(err.Error(), file+":") {
				t.Fatalf("no place in %v", err)
			}
			return
		}
		h, err := c.Resolve(host, sshconfig.Override{})
		if err != nil {
			return
		}
		if h.Port < 1 || h.Port > 65535 || h.Attempts < 1 || h.ConnectTimeout < 0 || h.AliveInterval < 0 {
			t.Fatalf("%+v", h)
		}
		for _, w := range h.Warnings {
			if s := fmt.Sprint(w); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("a control character in %q", s)
			}
		}
	})
}
