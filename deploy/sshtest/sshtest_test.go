package sshtest_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
)

// OpenSSH's own client is let in by the key and knows the server.
func TestOpenSSHGetsIn(t *testing.T) {
	testenv.Need(t, testenv.Program("ssh"))
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	out, err := exec.Command("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "UserKnownHostsFile="+s.KnownHosts, "-o", "IdentitiesOnly=yes",
		"-i", s.Identity, "-p", strconv.Itoa(int(s.Addr.Port())), s.User+"@"+s.Addr.Addr().String(), "echo", "in").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "in" {
		t.Errorf("%v: %q", err, out)
	}
	s.Stop()
	if err := exec.Command("kill", "-0", strconv.Itoa(s.PID())).Run(); err == nil {
		t.Errorf("process %d is there after Stop", s.PID())
	}
}
