package sshclient_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
)

// behind is a node that is reached through others.
func behind(s *sshtest.Server, name string, jumps ...*sshtest.Server) *inventory.Node {
	n := s.Node(name)
	for _, j := range jumps {
		n.Jump = append(n.Jump, j.User+"@"+j.Addr.String())
		n.KnownHosts = append(n.KnownHosts, j.KnownHosts)
		n.Identity = append(n.Identity, j.Identity)
	}
	return n
}

func TestJumpHosts(t *testing.T) {
	far, near, last := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	c := dial(t, sshclient.Options{}, behind(last, "n01", near, far))
	out, _, err := c.Run(within(t), nil, "sh", "-c", "echo $SSH_CONNECTION")
	if err != nil {
		t.Fatal(err)
	}
	// The node sees the host in front of it.
	if f := strings.Fields(string(out)); len(f) != 4 || f[3] != fmt.Sprint(last.Addr.Port()) {
		t.Errorf("SSH_CONNECTION=%s", out)
	}
	if c.Local() != nil || c.Remote() != nil {
		t.Errorf("ends %v and %v of a connection through others", c.Local(), c.Remote())
	}
	for _, s := range []*sshtest.Server{near, far, last} {
		if n := strings.Count(s.Log(), "Accepted publickey"); n != 1 {
			t.Errorf("%d logins at %s", n, s.Addr)
		}
	}
	c.Close()
	<-c.Done()
	wantReason(t, c.Err(), sshclient.Closed)
}

// Each host on the way is verified as itself.
func TestJumpHostsAreVerified(t *testing.T) {
	near, last := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	n := behind(last, "n01", near)
	n.KnownHosts = []string{last.KnownHosts}
	err := tryDial(t, sshclient.Options{Config: configured(t, "UserKnownHostsFile none\n")}, n)
	wantReason(t, err, sshclient.HostKeyUnknown, "n01 (at its jump host "+near.User+"@"+near.Addr.String(), "ssh-keyscan -p")

	n.KnownHosts = []string{near.KnownHosts}
	err = tryDial(t, sshclient.Options{}, n)
	wantReason(t, err, sshclient.HostKeyUnknown, "n01 ("+last.User+"@"+last.Addr.String(), "log in once: ssh", "-J "+near.User+"@"+near.Addr.String())
	var e *sshclient.Error
	if errors.As(err, &e); e.Jump {
		t.Errorf("%+v", e)
	}
	n = behind(last, "n01", near)
	n.Identity = []string{last.Identity}
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.AuthRefused, "at its jump host")
}

// A jump host that is a node of the inventory is reached as that says, and one of
// ssh_config as that does, with the hosts in front of it.
func TestJumpHostsByName(t *testing.T) {
	gate, mid, last := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	n := last.Node("n01")
	n.Jump = []string{"mid"}
	m := mid.Node("mid")
	m.Jump = []string{"gate"}
	cfg := configured(t, fmt.Sprintf("Host gate\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n", gate.Addr.Port(), gate.User, gate.Identity, gate.KnownHosts))
	if err := tryDial(t, sshclient.Options{Config: cfg, Nodes: []inventory.Node{*n, *m}}, n); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sshtest.Server{gate, mid, last} {
		if n := strings.Count(s.Log(), "Accepted publickey"); n != 1 {
			t.Errorf("%d logins at %s", n, s.Addr)
		}
	}
	circle := configured(t, "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
	wantReason(t, tryDial(t, sshclient.Options{Config: circle}, &inventory.Node{Name: "a"}), sshclient.Settings, "in a circle")
}

// Nodes behind the same host share one connection to it, which ends with the last of
// them, and comes back with the next.
func TestJumpHostIsShared(t *testing.T) {
	near, last := sshtest.Start(t, sshtest.Options{Config: []string{"MaxStartups 3", "MaxSessions 2"}}), sshtest.Start(t, sshtest.Options{})
	d := sshclient.New(sshclient.Options{Timeout: patience})
	for round := 1; round <= 2; round++ {
		clients := make([]sshclient.Client, 20)
		for i, err := range sshclient.Each(within(t), len(clients), len(clients), func(i int) (err error) {
			clients[i], err = d.Dial(within(t), behind(last, fmt.Sprintf("n%02d", i), near))
			return err
		}) {
			if err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
		}
		if n := strings.Count(near.Log(), "Accepted publickey"); n < 1 || n > round { // the second round may still find the connection of the first
			t.Errorf("%d logins at the jump host up to round %d", n, round)
		}
		for _, c := range clients {
			if _, _, err := c.Run(within(t), nil, "true"); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	}
	if n := strings.Count(last.Log(), "Accepted publickey"); n != 40 {
		t.Errorf("%d logins at the node", n)
	}
}

func TestJumpHostForwardsNothing(t *testing.T) {
	near, last := sshtest.Start(t, sshtest.Options{Config: []string{"AllowTcpForwarding no"}}), sshtest.Start(t, sshtest.Options{})
	wantReason(t, tryDial(t, sshclient.Options{}, behind(last, "n01", near)), sshclient.Unreachable, "forwards no connections", "AllowTcpForwarding yes", near.Addr.String())
	near2 := sshtest.Start(t, sshtest.Options{})
	last.Stop()
	wantReason(t, tryDial(t, sshclient.Options{}, behind(last, "n01", near2)), sshclient.Unreachable, "seen from "+near2.User+"@"+near2.Addr.String())
	// A jump host that is down is tried once for all who wait for it.
	near2.Stop()
	d := sshclient.New(sshclient.Options{Timeout: patience})
	for i, err := range sshclient.Each(within(t), 5, 5, func(i int) error {
		_, err := d.Dial(within(t), behind(last, fmt.Sprintf("n%02d", i), near2))
		return err
	}) {
		wantReason(t, err, sshclient.Unreachable, fmt.Sprintf("node n%02d (at its jump host", i))
	}
}
