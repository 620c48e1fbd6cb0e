package sshd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
)

// A server of a network namespace listens there, and only there; this thread is
// where it was.
func TestInNamespace(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetNS, testenv.SSHServer(Available), testenv.Program("unshare"), testenv.Program("ip"))
	holder := exec.Command("unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat")
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); holder.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	before := netns(t, "thread-self")
	ns := fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid)
	s, err := Start(t.Context(), Options{Dir: t.TempDir(), NetNS: ns})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if got := netns(t, fmt.Sprint(s.PID())); got != netns(t, fmt.Sprint(holder.Process.Pid)) || got == before {
		t.Errorf("the server is in %s, the test in %s", got, before)
	}
	if s.Addr.String() != "127.0.0.1:22" {
		t.Errorf("listens on %s", s.Addr)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", s.PID()))
	if err != nil || !strings.Contains(string(b), "0100007F:0016 00000000:0000 0A") {
		t.Errorf("nobody listens on 127.0.0.1:22 there: %v\n%s", err, b)
	}
	if after := netns(t, "thread-self"); after != before {
		t.Errorf("the test moved from %s to %s", before, after)
	}
}

func netns(t *testing.T, pid string) string {
	t.Helper()
	l, err := os.Readlink("/proc/" + pid + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
