package sshconfig_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/sshconfig"
	"github.com/hopbed/hopbed/internal/testenv"
)

// cases are configurations that the real ssh is asked about as well. DIR stands for
// the folder of the files.
var cases = []struct {
	name  string
	text  string
	files map[string]string // included ones
	hosts []string          // "host", or "user@host:port" for options -l and -p
}{
	{"empty", "", nil, []string{"h", "H.Example", "me@h:2222", "192.168.1.1", "fe80::1"}},
	{"first value counts", "Host a\n Port 1\nHost *\n Port 2\n User u\nHost a\n User v\n", nil, []string{"a", "b", "x@a", "a:99"}},
	{"patterns", "Host a* !ab *.lab ?\n User u\nHost 10.0.?.[1-9]\n User w\nHost \"c d\" e\n User q\n", nil, []string{"a", "ab", "abc", "x.lab", "x", "xy", "10.0.1.5", "10.0.1.[1-9]", "e"}},
	{"negation alone", "Host !a\n User u\n", nil, []string{"a", "b"}},
	{"names are cased", "Host Gate\n User u\n HostName GATE.Lab\n", nil, []string{"Gate", "gate", "GATE"}},
	{"equals and case of keywords", "hOsT=a\n\tPORT = 7\nUser=u\n  HostName   =   x  \n", nil, []string{"a"}},
	{"quotes and comments", "Host a # not a host\n IdentityFile \"/tmp/with space\" # a key\n IdentityFile /tmp/w\\ x\n IdentityFile '/tmp/it\"s'\n IdentityFile /tmp/a#b\n # nothing\n User \"u\"\n", nil, []string{"a", "#", "not"}},
	{"carriage returns", "Host a\r\n User u\r\n Port 3\r\n", nil, []string{"a"}},
	{"host name tokens", "Host *\n HostName %h.lab.%%x\n", nil, []string{"n1"}},
	{"user's files", "Host a\n UserKnownHostsFile ~/kh /tmp/%h-%n-%k-%p-%r-%u-%i-%%-%d-%l-%L-%C\n HostName real\n Port 77\n User bob\nHost b\n UserKnownHostsFile none\n GlobalKnownHostsFile /x /y\n", nil, []string{"a", "b"}},
	{"alias of the key", "Host a\n HostKeyAlias KeyName\n UserKnownHostsFile /tmp/%k\n", nil, []string{"a"}},
	{"environment", "Host a\n UserKnownHostsFile /tmp/${HOPBED_TEST_ENV}/x\n", nil, []string{"a"}},
	{"environment not set", "Host a\n UserKnownHostsFile /tmp/${HOPBED_TEST_NOT_SET}/x\n", nil, []string{"a", "b"}},
	{"identities", "IdentityFile ~/.ssh/one\nHost a\n IdentityFile ~/.ssh/two\n IdentityFile ~/.ssh/one\n IdentitiesOnly yes\nHost *\n IdentityFile three\n IdentityAgent none\n", nil, []string{"a", "b"}},
	{"identity none", "IdentityFile none\n", nil, []string{"a"}},
	{"jumps", "Host a\n ProxyJump g\nHost b\n ProxyJump u@g:22,[::1]:2222,ssh://v@h:3/\nHost c\n ProxyJump none\nHost *\n ProxyJump last\n", nil, []string{"a", "b", "c", "d"}},
	{"jump before command", "Host a\n ProxyJump g\n ProxyCommand nc %h %p\nHost b\n ProxyCommand none\n ProxyJump g\n", nil, []string{"a", "b"}},
	{"times", "Host a\n ConnectTimeout 90\n ServerAliveInterval 5\nHost b\n ConnectTimeout 1m30s\n ServerAliveInterval 2m\n ServerAliveCountMax 9\nHost c\n ConnectTimeout none\nHost d\n ConnectTimeout 1H2\n", nil, []string{"a", "b", "c", "d"}},
	{"switches", "Host a\n StrictHostKeyChecking yes\n HashKnownHosts yes\n BatchMode yes\n PubkeyAuthentication no\n AddressFamily inet6\n ConnectionAttempts 4\nHost b\n StrictHostKeyChecking accept-new\n AddressFamily inet\nHost c\n StrictHostKeyChecking off\n IdentitiesOnly true\nHost d\n StrictHostKeyChecking ask\n", nil, []string{"a", "b", "c", "d"}},
	{"include", "Host a b\n Include DIR/inc\n Port 4\nHost *\n User last\n", map[string]string{"inc": "User inner\nHost b\n Port 5\nHost zzz\n Port 6\n"}, []string{"a", "b", "c", "zzz"}},
	{"include of several", "Include DIR/d/*.conf DIR/none DIR/no/*\nHost *\n User last\n", map[string]string{"d/2.conf": "User two\n", "d/1.conf": "Host b\n User one\n", "d/3.other": "Port 9\n"}, []string{"a", "b"}},
	{"include does not end a block", "Host a\n Include DIR/inc\n User after\n", map[string]string{"inc": "Host x\n Port 7\n"}, []string{"a", "x"}},
	{"match", "Match host real.*\n Port 5\nHost a\n HostName real.a\nMatch host real.*\n User u\nMatch originalhost a\n ConnectTimeout 3\nMatch host !real.a,real.*\n Port 6\n", nil, []string{"a", "real.b", "c"}},
	{"match users", "Match user bob\n Port 5\nMatch user alice,bob* !host x\n ConnectTimeout 9\nMatch all\n ServerAliveInterval 4\n", nil, []string{"bob@a", "bob@x", "alice@x", "bobby@x", "a"}},
	{"match with user of the file", "Host a\n User bob\nMatch user bob\n Port 5\n", nil, []string{"a", "b"}},
	{"match final", "Host a\n HostName real\nMatch final host real\n Port 9\nMatch final all\n User f\nMatch !final\n ConnectTimeout 4\n", nil, []string{"a", "b", "real"}},
	{"unknown but announced", "IgnoreUnknown X*,Foo\nXyz 1\nFoo bar\nUser u\n", nil, []string{"a"}},
	{"what does not matter", "ForwardAgent yes\nSendEnv LANG LC_*\nControlMaster auto\nControlPath /tmp/%r@%h\nLogLevel ERROR\nRequestTTY no\nCompression yes\nUser u\n", nil, []string{"a"}},
	{"bad port", "Host a\n Port 99999\n", nil, []string{"a"}},
	{"bad quotes", "User \"x\n", nil, []string{"a"}},
	{"no value", "User\n", nil, []string{"a"}},
	{"two values", "User a b\n", nil, []string{"a"}},
	{"bad switch", "Host a\n IdentitiesOnly maybe\n", nil, []string{"a"}},
	{"bad time", "ConnectTimeout soon\n", nil, []string{"a"}},
	{"bad jump", "ProxyJump a:b:c@d:e\n", nil, []string{"a"}},
	{"includes itself", "Include DIR/loop\n", map[string]string{"loop": "Include DIR/loop\n"}, []string{"a"}},
	{"bad token", "UserKnownHostsFile /tmp/%Q\n", nil, []string{"a"}},
}

// What the real ssh says about a host is what we say.
func TestAsOpenSSH(t *testing.T) {
	testenv.Need(t, testenv.Program("ssh"))
	t.Setenv("HOPBED_TEST_ENV", "value")
	os.Unsetenv("HOPBED_TEST_NOT_SET")
	env, err := sshconfig.OfProcess()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, c := range cases {
		dir := t.TempDir()
		in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
		for name, text := range c.files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(in(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "config")
		if err := os.WriteFile(file, []byte(in(c.text)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, h := range c.hosts {
			asked++
			compare(t, c.name, file, h, env)
		}
	}
	if asked < 60 {
		t.Errorf("ssh was asked %d times only", asked)
	}
}

func compare(t *testing.T, name, file, host string, env sshconfig.Env) {
	t.Helper()
	args, over := []string{"-G", "-F", file}, sshconfig.Override{}
	if user, rest, ok := strings.Cut(host, "@"); ok {
		over.User, host = user, rest
		args = append(args, "-l", user)
	}
	if h, port, ok := strings.Cut(host, ":"); ok && !strings.Contains(port, ":") {
		over.Port, _ = strconv.Atoi(port)
		host = h
		args = append(args, "-p", port)
	}
	cmd := exec.Command("ssh", append(args, "--", host)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, refused := cmd.Output()
	cfg, err := sshconfig.Load(sshconfig.Files{User: file}, env)
	var got *sshconfig.Host
	if err == nil {
		got, err = cfg.Resolve(host, over)
	}
	if refused != nil || err != nil {
		if refused == nil || err == nil {
			t.Errorf("%s, %s: ssh says %v %s; we say %v", name, host, refused, stderr.String(), err)
		}
		return
	}
	want := map[string][]string{}
	for _, l := range strings.Split(string(out), "\n") {
		k, v, _ := strings.Cut(l, " ")
		want[k] = append(want[k], v)
	}
	home := func(v []string) string {
		var out []string
		for _, s := range v {
			if rest, ok := strings.CutPrefix(s, "~/"); ok {
				s = env.Home + "/" + rest
			}
			out = append(out, s)
		}
		return strings.Join(out, " ")
	}
	var ids []string
	for _, i := range got.Identities {
		ids = append(ids, i.File)
	}
	if strings.Join(want["identityfile"], "") == "none" {
		delete(want, "identityfile")
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	timeout := seconds(got.ConnectTimeout)
	if timeout == "0" {
		timeout = "none"
	}
	yes := func(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }
	if got.BatchMode { // Debian's ssh then has another default
		got.AliveInterval = 0
		want["serveraliveinterval"] = []string{"0"}
	}
	family := map[string]string{"tcp": "any", "tcp4": "inet", "tcp6": "inet6"}[got.Family]
	strict := map[string]string{"yes": "true", "no": "false", "ask": "ask", "accept-new": "accept-new"}[got.StrictHostKey]
	for _, p := range []struct{ what, got, want string }{
		{"hostname", got.HostName, strings.Join(want["hostname"], " ")},
		{"user", got.User, strings.Join(want["user"], " ")},
		{"port", strconv.Itoa(got.Port), strings.Join(want["port"], " ")},
		{"identityfile", strings.Join(ids, " "), home(defaults(want["identityfile"], got))},
		{"identitiesonly", yes(got.IdentitiesOnly), strings.Join(want["identitiesonly"], " ")},
		{"proxyjump", strings.Join(got.ProxyJump, ","), strings.Join(want["proxyjump"], " ")},
		{"userknownhostsfile", strings.Join(got.UserKnown, " "), none(home(strings.Fields(strings.Join(want["userknownhostsfile"], " "))))},
		{"globalknownhostsfile", strings.Join(got.GlobalKnown, " "), none(strings.Join(want["globalknownhostsfile"], " "))},
		{"stricthostkeychecking", strict, strings.Join(want["stricthostkeychecking"], " ")},
		{"hostkeyalias", got.HostKeyAlias, strings.Join(want["hostkeyalias"], " ")},
		{"hashknownhosts", yes(got.HashKnown), strings.Join(want["hashknownhosts"], " ")},
		{"batchmode", yes(got.BatchMode), strings.Join(want["batchmode"], " ")},
		{"connecttimeout", timeout, strings.Join(want["connecttimeout"], " ")},
		{"serveraliveinterval", seconds(got.AliveInterval), strings.Join(want["serveraliveinterval"], " ")},
		{"serveralivecountmax", strconv.Itoa(got.AliveCount), strings.Join(want["serveralivecountmax"], " ")},
		{"connectionattempts", strconv.Itoa(got.Attempts), strings.Join(want["connectionattempts"], " ")},
		{"addressfamily", family, strings.Join(want["addressfamily"], " ")},
		{"pubkeyauthentication", fmt.Sprint(got.PublicKey), strings.Join(want["pubkeyauthentication"], " ")},
	} {
		if p.got != p.want {
			t.Errorf("%s, %s: %s is %q for us, %q for ssh", name, host, p.what, p.got, p.want)
		}
	}
}

func none(s string) string {
	if s == "none" {
		return ""
	}
	return s
}

// defaults leaves out the default keys of types that hopbed does not know (XMSS).
func defaults(files []string, got *sshconfig.Host) []string {
	if len(got.Identities) == 0 || !got.Identities[0].Default {
		return files
	}
	var out []string
	for _, f := range files {
		if !strings.HasSuffix(f, "id_xmss") {
			out = append(out, f)
		}
	}
	return out
}
