package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/check"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/nodetest"
)

// router starts Dropbear, as mesh routers have it: no sftp, no signals to programs,
// and where BusyBox is installed no other tools. Its root has a home of its own, in a
// mount namespace.
func router(t *testing.T) *inventory.Node {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.Program("dropbear"), testenv.Program("dropbearkey"), testenv.Program("busybox"), testenv.Program("unshare"), testenv.Program("mount"))
	dir := t.TempDir()
	box, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	applets, err := exec.Command(box, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(box)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "busybox"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, a := range strings.Fields(string(applets)) {
		if err := os.Symlink("busybox", filepath.Join(bin, a)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	hostKey := filepath.Join(dir, "host")
	out, err := exec.Command("dropbearkey", "-t", "ed25519", "-f", hostKey).Output()
	if err != nil {
		t.Fatalf("dropbearkey: %v", err)
	}
	var public string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "ssh-ed25519 ") {
			public = strings.Join(strings.Fields(line)[:2], " ")
		}
	}
	identity := sshtest.Key(t, "ed25519", "")
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	sshtest.Write(t, filepath.Join(home, ".ssh", "authorized_keys"), sshtest.Read(t, identity+".pub"))
	// Dropbear sets PATH and takes the shell of /etc/passwd: both are replaced.
	passwd := sshtest.Write(t, filepath.Join(dir, "passwd"), "root:x:0:0:root:/root:/bin/sh\n")
	shells := sshtest.Write(t, filepath.Join(dir, "shells"), "/bin/sh\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("unshare", "-m", "sh", "-c",
		`mount --bind "$1" /root && mount --bind "$5" /etc/passwd && mount --bind "$6" /etc/shells && cp "$(command -v dropbear)" "$4/dropbear" && mount --bind "$2" /usr/bin && exec "$4/dropbear" -F -E -s -p "127.0.0.1:$3" -r "$4/host" -P "$4/pid"`,
		"sh", home, bin, strconv.Itoa(port), dir, passwd, shells)
	log := &node.Tail{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("dropbear said:\n%s", log)
		}
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("dropbear does not listen: %v; %s", err, log)
		}
	}
	known := sshtest.Write(t, filepath.Join(dir, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s\n", port, public))
	return &inventory.Node{Name: "router", Address: "127.0.0.1", Port: port, User: "root", Identity: []string{identity}, Jump: []string{}, KnownHosts: []string{known}, Dir: "/tmp/" + filepath.Base(dir) + strconv.Itoa(port)}
}

func TestDropbearAndBusyBox(t *testing.T) {
	n := router(t)
	t.Cleanup(func() { os.RemoveAll(n.Dir) })
	dialer := sshclient.New(sshclient.Options{Timeout: time.Minute})
	found := check.Run(context.Background(), check.Options{Dialer: dialer, Agents: source{}}, []inventory.Node{*n})[0]
	if !found.Usable || found.Agent == nil || found.Agent.Present || strings.Contains(strings.Join(found.Tools, " "), "iperf") {
		t.Errorf("a router: %+v", found)
	}
	pool, err := NewPool(PoolOptions{Dialer: dialer, Agents: source{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	nodetest.Run(t, func(t *testing.T) node.Driver {
		d, err := New(Options{Pool: pool, Tag: "test-tag", Grace: 100 * time.Millisecond, Nodes: func(s node.Spec) (*inventory.Node, error) {
			m := *n
			m.Name = s.Name
			return &m, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
