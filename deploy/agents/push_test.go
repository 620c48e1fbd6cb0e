package agents

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/internal/testenv"
)

// self is the test program as an agent.
func self(t *testing.T) *Binary {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(exe, testArch(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testArch(t *testing.T) string {
	t.Helper()
	arch, err := Arch(machine(t), false)
	if err != nil {
		t.Fatal(err)
	}
	return arch
}

func machine(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("uname", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// shells are those that nodes have.
func shells(t *testing.T) map[string][]string {
	all := map[string][]string{"sh": {"sh"}}
	for _, s := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(s); err == nil {
			all[s] = []string{s}
		}
	}
	if b, err := exec.LookPath("busybox"); err == nil {
		all["busybox"] = []string{b, "sh"}
	}
	return all
}

// router is a PATH with nothing but what BusyBox has, and less: no sha256sum where
// without says so.
func router(t *testing.T, without ...string) string {
	t.Helper()
	testenv.Need(t, testenv.Program("busybox"))
	box, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := exec.Command(box, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, applet := range strings.Fields(string(out)) {
		if strings.Contains(" "+strings.Join(without, " ")+" ", " "+applet+" ") {
			continue
		}
		if err := os.Symlink(box, filepath.Join(dir, applet)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExamine(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			h := &here{shell: shell, env: []string{"SSH_CONNECTION=10.1.2.3 50000 10.1.2.4 22", "HOME=/home/x y"}}
			no := false
			f, err := Examine(context.Background(), h, &inventory.Node{Name: "n1", Sudo: &no})
			if os.Geteuid() != 0 {
				if kindOf(t, err) != KindPrivileges {
					t.Errorf("no root and no sudo: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Machine != machine(t) || f.Arch != testArch(t) || f.Kernel == "" || f.UID != os.Geteuid() || f.Home != "/home/x y" || f.Sudo ||
				f.Controller.String() != "10.1.2.3" || f.Address.String() != "10.1.2.4" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// sudo is a program of that name in a PATH of its own.
func sudo(t *testing.T, script string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sudo"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
}

func TestSudo(t *testing.T) {
	yes := true
	n := &inventory.Node{Name: "n1", Sudo: &yes}
	f, err := Examine(context.Background(), &here{env: sudo(t, `[ "$1" = -n ] && shift && exec "$@"`)}, n)
	if err != nil || !f.Sudo {
		t.Errorf("sudo that works: %+v, %v", f, err)
	}
	for said, remedy := range map[string]string{
		"sudo: a password is required":                 "NOPASSWD",
		"sudo: sorry, you must have a tty to run sudo": "requiretty",
		"x is not in the sudoers file.":                "NOPASSWD",
	} {
		_, err := Examine(context.Background(), &here{env: sudo(t, fmt.Sprintf("echo '%s' >&2; exit 1", said))}, n)
		if kindOf(t, err) != KindPrivileges || !strings.Contains(err.Error(), remedy) || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), "node n1") {
			t.Errorf("%q became %v", said, err)
		}
	}
	// It must not wait for an answer: its input is at its end.
	_, err = Examine(context.Background(), &here{env: sudo(t, `read answer && exit 0; echo 'sudo: no password was given' >&2; exit 1`)}, n)
	if kindOf(t, err) != KindPrivileges {
		t.Errorf("a sudo that asks: %v", err)
	}
	_, err = Examine(context.Background(), &here{env: []string{"PATH=" + router(t)}, shell: []string{filepath.Join(router(t), "sh")}}, n)
	if kindOf(t, err) != KindPrivileges || !strings.Contains(err.Error(), "there is no sudo") {
		t.Logf("sudo is below /usr/sbin here? %v", err)
		t.Errorf("no sudo: %v", err)
	}
	if !IsSudo("sudo: a password is required") || IsSudo("hopbed-agent: sudo: x") || IsSudo("") {
		t.Error("sudo's own words are not told from others'")
	}
}

func TestStrangeNodes(t *testing.T) {
	n := &inventory.Node{Name: "n1"}
	for _, c := range []struct {
		answers map[string]string
		want    Kind
	}{
		{map[string]string{"system": "OpenBSD", "machine": "x86_64", "uid": "0"}, KindSystem},
		{map[string]string{"system": "Linux", "machine": "sh4", "uid": "0"}, KindArchitecture},
		{map[string]string{"system": "Linux", "machine": "x86_64", "uid": ""}, KindShell},
	} {
		_, err := facts(n, c.answers)
		if kindOf(t, err) != c.want || !strings.Contains(err.Error(), "n1") {
			t.Errorf("%v: %v", c.answers, err)
		}
	}
	if f, err := facts(n, map[string]string{"system": "Linux", "machine": "mips", "order": "b", "uid": "0"}); err != nil || f.Arch != "mips" {
		t.Errorf("big-endian mips: %+v, %v", f, err)
	}
	// A shell that is none, and one that talks.
	if _, err := Examine(context.Background(), &here{shell: []string{"true"}}, n); kindOf(t, err) != KindShell {
		t.Errorf("a shell that does nothing: %v", err)
	}
	a := parse([]byte("Welcome!\nhopbed:\nno newline hopbed:uid 0\r\nhopbed:end ok\n"))
	if a["uid"] != "0" || a["end"] != "ok" {
		t.Errorf("answers between a login script's words: %v", a)
	}
}

func TestDir(t *testing.T) {
	f := Facts{Home: "/home/u"}
	for dir, want := range map[string]string{"": "/home/u/.cache/hopbed", "~/x": "/home/u/x", "~": "/home/u", "/tmp/a/../b": "/tmp/b"} {
		if got, err := f.Dir(&inventory.Node{Name: "n1", Dir: dir}); err != nil || got != want {
			t.Errorf("%q became %q, %v", dir, got, err)
		}
	}
	for _, bad := range []string{"x", "./x", "~other/x"} {
		if got, err := f.Dir(&inventory.Node{Name: "n1", Dir: bad}); kindOf(t, err) != KindFolder {
			t.Errorf("%q became %q, %v", bad, got, err)
		}
	}
	if _, err := (Facts{}).Dir(&inventory.Node{Name: "n1"}); kindOf(t, err) != KindFolder {
		t.Errorf("no home: %v", err)
	}
}

func TestPush(t *testing.T) {
	ctx := context.Background()
	b := self(t)
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			// A folder whose name a shell would take apart.
			dir := filepath.Join(t.TempDir(), "it's a $HOME; `x` \"dir\"", "deep")
			n := &inventory.Node{Name: "n1", Dir: dir}
			f := Facts{Arch: b.Arch}
			h := &here{shell: shell}
			if _, there, err := Look(ctx, h, n, f, b); there || err != nil {
				t.Fatalf("an empty node: there %v, %v", there, err)
			}
			if names(t, filepath.Dir(dir)) != "" {
				t.Error("a look has changed something")
			}
			p, err := Push(ctx, h, n, f, b)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Uploaded || p.Path != filepath.Join(dir, b.Name()) || p.Identity != about.Own() || names(t, dir) != b.Name() {
				t.Errorf("%+v; the folder has %s", p, names(t, dir))
			}
			st, err := os.Stat(p.Path)
			if err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v: nobody else's business", st.Mode(), err)
			}
			before := st.ModTime()
			p, err = Push(ctx, h, n, f, b)
			if st, err2 := os.Stat(p.Path); err != nil || p.Uploaded || err2 != nil || !st.ModTime().Equal(before) {
				t.Errorf("the second time: %+v, %v, %v", p, err, err2)
			}
			// A file that was damaged is replaced, a running one as well.
			damage(t, p.Path, b.Size/2)
			if p, err = Push(ctx, h, n, f, b); err != nil || !p.Uploaded {
				t.Errorf("a damaged agent: %+v, %v", p, err)
			}
			other := &Binary{Arch: "other", SHA256: b.SHA256}
			if _, err := Push(ctx, h, n, f, other); kindOf(t, err) != KindArchitecture {
				t.Errorf("a program for another processor: %v", err)
			}
		})
	}
}

// damage turns one bit of a file over.
func damage(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var one [1]byte
	if _, err := f.ReadAt(one[:], at); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 1
	if _, err := f.WriteAt(one[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestOldAgentsGo(t *testing.T) {
	b := self(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	age := func(name string, by time.Duration) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-by)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	age("hopbed-agent-arm-older", 2*time.Hour)
	age("hopbed-agent-arm-newer", time.Hour)
	age("hopbed-agent-arm-x.1.part", 2*time.Hour)
	age("hopbed-agent-arm-y.2.part", time.Minute) // another controller's, maybe
	age("notes.txt", 100*time.Hour)
	if _, err := Push(context.Background(), &here{}, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: b.Arch}, b); err != nil {
		t.Fatal(err)
	}
	want := []string{b.Name(), "hopbed-agent-arm-newer", "hopbed-agent-arm-y.2.part", "notes.txt"}
	for _, w := range want {
		if !strings.Contains(names(t, dir), w) {
			t.Errorf("%s is gone", w)
		}
	}
	if got := strings.Fields(names(t, dir)); len(got) != len(want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

// A connection that is cut looks like the end of the input.
func TestCutUploadLeavesNothing(t *testing.T) {
	b := self(t)
	dir := filepath.Join(t.TempDir(), "d")
	_, err := Push(context.Background(), &here{cut: b.Size / 2}, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: b.Arch}, b)
	if kindOf(t, err) != KindDamaged || !strings.Contains(err.Error(), fmt.Sprint(b.Size/2)) {
		t.Errorf("half an upload: %v", err)
	}
	if names(t, dir) != "" {
		t.Errorf("left: %s", names(t, dir))
	}
	// What arrives is not what was sent.
	bad := *b
	bad.SHA256 = strings.Repeat("0", 64)
	_, err = Push(context.Background(), &here{}, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: b.Arch}, &bad)
	if kindOf(t, err) != KindDamaged || !strings.Contains(err.Error(), b.SHA256) {
		t.Errorf("another hash: %v", err)
	}
	if names(t, dir) != "" {
		t.Errorf("left: %s", names(t, dir))
	}
}

// A node without a tool for hashes asks the agent.
func TestHashWithoutTools(t *testing.T) {
	b := self(t)
	dir := filepath.Join(t.TempDir(), "d")
	path := router(t, "sha256sum", "busybox")
	// The scripts append the folders of administrators; openssl may be in none of them.
	h := &here{env: []string{"PATH=" + path}, shell: []string{filepath.Join(path, "sh")}}
	n := &inventory.Node{Name: "n1", Dir: dir}
	p, err := Push(context.Background(), h, n, Facts{Arch: b.Arch}, b)
	if err != nil || !p.Uploaded {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = Push(context.Background(), h, n, Facts{Arch: b.Arch}, b); err != nil || p.Uploaded {
		t.Errorf("again: %+v, %v", p, err)
	}
}

func TestAgentOfAnotherVersionIsRefused(t *testing.T) {
	b := self(t)
	dir := filepath.Join(t.TempDir(), "d")
	for _, id := range []string{"hopbed-agent unknown, protocol 1", "hopbed-agent v9.9.9, protocol x", "something else"} {
		_, err := Push(context.Background(), &here{env: []string{"TEST_IDENTITY=" + id}}, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: b.Arch}, b)
		if kindOf(t, err) != KindVersion || !strings.Contains(err.Error(), "node n1") {
			t.Errorf("%q: %v", id, err)
		}
		if names(t, dir) != "" {
			t.Errorf("left: %s", names(t, dir))
		}
	}
}

// A node that says it is another machine than it is: shells then try to read the
// program as a script.
func TestProgramForAnotherProcessorIsNotLeft(t *testing.T) {
	if testArch(t) == "arm64" {
		t.Skip("SKIP[architecture] the foreign program is for arm64, and so is this host")
	}
	b, err := Open(fake(t, t.TempDir(), "arm64"), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	for name, shell := range shells(t) {
		dir := filepath.Join(t.TempDir(), "d")
		_, err := Push(context.Background(), &here{shell: shell}, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: "arm64"}, b)
		if kindOf(t, err) != KindArchitecture || !strings.Contains(err.Error(), "arm64") {
			t.Errorf("%s: %v", name, err)
		}
		if names(t, dir) != "" {
			t.Errorf("%s: left %s", name, names(t, dir))
		}
	}
}

func TestFoldersOfOthers(t *testing.T) {
	b := self(t)
	dir := t.TempDir()
	n := &inventory.Node{Name: "n1", Dir: dir}
	for _, mode := range []os.FileMode{0o770, 0o707, 0o777} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Push(context.Background(), &here{}, n, Facts{Arch: b.Arch}, b); kindOf(t, err) != KindFolder || names(t, dir) != "" {
			t.Errorf("a folder of mode %o: %v; it has %s", mode, err, names(t, dir))
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := Push(context.Background(), &here{}, n, Facts{Arch: b.Arch}, b); kindOf(t, err) != KindFolder {
			t.Errorf("somebody else's folder: %v", err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.Dir = filepath.Join(file, "x")
	if _, err := Push(context.Background(), &here{}, n, Facts{Arch: b.Arch}, b); kindOf(t, err) != KindFolder {
		t.Errorf("a folder in a file: %v", err)
	}
}

// Mounts are made in a mount namespace that only the "node" is in.
func TestFullAndNoexecFolders(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.Program("unshare"), testenv.Program("nsenter"), testenv.Program("mount"))
	b := self(t)
	for _, c := range []struct {
		options string
		want    Kind
	}{{"size=256k,mode=0700", KindDiskFull}, {"noexec,mode=0700", KindNoExec}, {"ro,mode=0700", KindFolder}} {
		dir := t.TempDir()
		hold := exec.Command("unshare", "-m", "sh", "-c", `mount -t tmpfs -o "$1" tmpfs "$2" && echo ready && exec sleep 600`, "sh", c.options, dir)
		out, err := hold.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { hold.Process.Kill(); hold.Wait() })
		var ready string
		if _, err := fmt.Fscan(out, &ready); err != nil {
			t.Fatal(err)
		}
		h := &here{wrap: []string{"nsenter", "-t", fmt.Sprint(hold.Process.Pid), "-m"}}
		_, err = Push(context.Background(), h, &inventory.Node{Name: "n1", Dir: dir}, Facts{Arch: b.Arch}, b)
		if kindOf(t, err) != c.want || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", c.options, err)
		}
		left, _, err := h.Run(context.Background(), nil, "ls", "-A", dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %q, %v", c.options, left, err)
		}
	}
}
