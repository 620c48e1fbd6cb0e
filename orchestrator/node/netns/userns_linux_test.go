package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/wifi"
)

func TestRootNeedsNoUserNamespace(t *testing.T) {
	testenv.Need(t, testenv.Root)
	if ran, _, err := EnsureRoot(); ran || err != nil {
		t.Errorf("EnsureRoot as root: ran %v, %v", ran, err)
	}
}

func TestForbiddenUserNamespacesNameTheRemedy(t *testing.T) {
	for _, g := range gates {
		err := explain(syscall.EPERM, func(name string) ([]byte, error) {
			if name == g.file {
				return []byte(g.forbids + "\n"), nil
			}
			return nil, os.ErrNotExist
		})
		var u *tap.Unavailable
		if !errors.As(err, &u) || u.Do != g.do || !strings.Contains(u.Because, g.file) || !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", g.file, err)
		}
	}
	err := explain(syscall.EPERM, func(string) ([]byte, error) { return []byte("0\n"), nil })
	if !strings.Contains(err.Error(), "unprivileged_userns_clone=1") {
		t.Errorf("a permissive AppArmor setting was blamed: %v", err)
	}
}

// TestWithoutRoot runs a controller as an unprivileged user whose /dev/net/tun
// has mode 0666, as most distributions ship it. The machine's own device is not
// touched: the other one exists in a private mount namespace.
func TestWithoutRoot(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.TAP, testenv.UserNS)
	for _, c := range []struct{ mode, want string }{
		{"666", "exit 7"},
		{"600", "unavailable: TAP devices"},
	} {
		cmd := reexec.Command("hopbed-test-user", []string{c.mode})
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("mode %s: %v, %s; want %q", c.mode, err, out, c.want)
		}
		t.Logf("mode %s: %s", c.mode, out)
	}
}

// unprivileged prepares the mount namespace that it was started in and runs the
// controller as nobody.
func unprivileged() int {
	must := func(what string, err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	var mode uint32
	fmt.Sscanf(os.Args[1], "%o", &mode)
	must("private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir, err := os.MkdirTemp("", "hopbed-tun")
	must("directory", err)
	defer os.Remove(dir)
	must("tmpfs", unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	must("device", unix.Mknod(dir+"/tun", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))))
	must("mode", os.Chmod(dir+"/tun", os.FileMode(mode)))
	must("bind", unix.Mount(dir+"/tun", "/dev/net/tun", "", unix.MS_BIND, ""))

	cmd := reexec.Command("hopbed-test-root", nil)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		must("controller", err)
	}
	fmt.Println("exit", cmd.ProcessState.ExitCode())
	return 0
}

// rootless is a controller: it starts two nodes and an emulator.
func rootless() int {
	ran, status, err := EnsureRoot()
	if err != nil {
		fmt.Println("unavailable:", err)
		return 1
	}
	if ran {
		return status
	}
	if !Rootless() || os.Geteuid() != 0 {
		fmt.Println("not in the user namespace, uid", os.Geteuid())
		return 1
	}
	d, err := New(Options{Part: echoPart, Tag: "test-rootless"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	hs, err := d.Start(context.Background(), specs(2))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cfg := &emulator.Config{MACs: []wifi.MAC{wifi.DefaultMAC(wifi.StandardB)}, Radio: wifi.DiskRadio(100, 200), Positions: make([]wifi.Position, 2)}
	for _, h := range hs {
		if _, err := bufio.NewReader(h.Conn()).ReadString('\n'); err != nil {
			fmt.Println(err, h.Stderr())
			return 1
		}
		cfg.Nodes = append(cfg.Nodes, emulator.Node{Name: h.Name(), PID: h.PID()})
	}
	p, err := emulator.Start(context.Background(), cfg, emulator.Options{})
	var u *tap.Unavailable
	if errors.As(err, &u) {
		fmt.Println("unavailable:", u)
		return 1
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("priority:", p.Ready().Priority)
	r, err := p.Stop(context.Background())
	if err != nil || len(r.Nodes) != 2 || r.Nodes[0].DeviceError != "" {
		fmt.Println(r, err)
		return 1
	}
	if err := d.Close(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 7
}
