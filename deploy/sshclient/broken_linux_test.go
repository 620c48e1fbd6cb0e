package sshclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshtest"
)

// quick notices a cut after four seconds; a busy machine must not be taken for one.
var quick = sshclient.Options{KeepAlive: time.Second}

func wantLost(t *testing.T, c sshclient.Client, words ...string) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("the connection is not given up")
	}
	wantReason(t, c.Err(), sshclient.Lost, words...)
}

// A node that does not answer any more, as behind a cut network, is given up, and
// everything that waits for it with it.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, quick, s.Node("n01"))
	p, err := c.Start(within(t), nil, "cat")
	if err != nil {
		t.Fatal(err)
	}
	// Silence alone is no reason: the server answers that it is there.
	select {
	case <-c.Done():
		t.Fatal(c.Err())
	case <-time.After(5 * time.Second):
	}
	s.Pause()
	defer s.Resume()
	start := time.Now()
	running := make(chan error, 1)
	go func() {
		_, _, err := c.Run(context.Background(), nil, "true")
		running <- err
	}()
	wantLost(t, c, "n01", "nothing came back for")
	t.Logf("noticed after %v", time.Since(start).Round(10*time.Millisecond))
	wantReason(t, p.Wait(), sshclient.Lost)
	if _, err := p.Read(make([]byte, 1)); err == nil {
		t.Error("something can be read of a lost node")
	}
	wantReason(t, <-running, sshclient.Lost)
	if _, err := c.Start(within(t), nil, "true"); !errors.Is(err, sshclient.Lost) {
		t.Errorf("started on a lost node: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantReason(t, c.Err(), sshclient.Lost) // the first reason stays
}

// The same while more is written than the network takes.
func TestCutWhileWriting(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, quick, s.Node("n01"))
	s.Pause()
	defer s.Resume()
	ended := make(chan error, 1)
	go func() {
		_, _, err := c.Run(context.Background(), zeros{}, "sh", "-c", "cat >/dev/null")
		ended <- err
	}()
	wantLost(t, c)
	wantReason(t, <-ended, sshclient.Lost)
}

func TestKilledConnection(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, sshclient.Options{}, s.Node("n01"))
	p, err := c.Start(within(t), nil, "cat")
	if err != nil {
		t.Fatal(err)
	}
	s.DropConnections()
	wantLost(t, c, "the server ended it")
	wantReason(t, p.Wait(), sshclient.Lost)
	// The server is there again at once.
	if err := tryDial(t, sshclient.Options{}, s.Node("n01")); err != nil {
		t.Error(err)
	}
}

// What lies behind a jump host is lost with it.
func TestCutJumpHost(t *testing.T) {
	t.Parallel()
	near, last := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	c := dial(t, quick, behind(last, "n01", near))
	near.Pause()
	defer near.Resume()
	wantLost(t, c, "n01")
}

// listener accepts connections and gives each to f.
func listener(t *testing.T, f func(net.Conn)) *inventory.Node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c)
		}
	}()
	return &inventory.Node{Name: "n01", Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "x", Jump: []string{}, KnownHosts: []string{"/dev/null"}}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	soon := sshclient.Options{Timeout: time.Second}
	closed := listener(t, func(net.Conn) {})
	closed.Port = 1 // nobody listens there
	wantReason(t, tryDial(t, soon, closed), sshclient.Unreachable, "x@127.0.0.1:1", "refused", "its sshd runs")

	wantReason(t, tryDial(t, soon, listener(t, func(net.Conn) {})), sshclient.TimedOut, "within 1s", "ConnectTimeout")
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "ConnectTimeout 1\n")}, listener(t, func(net.Conn) {})), sshclient.TimedOut, "within 1s")
	wantReason(t, tryDial(t, soon, listener(t, func(c net.Conn) { c.Close() })), sshclient.Unreachable, "hung up before it said a word", "MaxStartups")
	wantReason(t, tryDial(t, soon, listener(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\x1b[2J\r\n\r\n")
		c.Close()
	})), sshclient.Protocol, "an SSH server listens there")
	wantReason(t, tryDial(t, sshclient.Options{}, &inventory.Node{Name: "n01", Address: "no-such-host.invalid", Jump: []string{}}), sshclient.Unreachable, "no-such-host.invalid")

	s := sshtest.Start(t, sshtest.Options{})
	s.Pause()
	defer s.Resume()
	wantReason(t, tryDial(t, soon, s.Node("n01")), sshclient.TimedOut)

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := sshclient.New(sshclient.Options{Timeout: patience}).Dial(ctx, s.Node("n01"))
	wantReason(t, err, sshclient.Canceled)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not the context's", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = sshclient.New(sshclient.Options{Timeout: patience}).Dial(ctx, s.Node("n01"))
	wantReason(t, err, sshclient.TimedOut)
}

// A server that drops some of many connections is tried again.
func TestDroppedAtRandom(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	drops := make(chan bool, 2)
	drops <- true
	drops <- true
	n := s.Node("n01")
	o := sshclient.Options{DialNet: func(ctx context.Context, of *inventory.Node, network, addr string) (net.Conn, error) {
		if of != n || network != "tcp" || addr != s.Addr.String() {
			t.Errorf("dial %s %s of %v", network, addr, of)
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		select {
		case <-drops:
			c.Close()
		default:
		}
		return c, err
	}}
	if err := tryDial(t, o, n); err != nil {
		t.Error(err)
	}
}

func TestOldServer(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"rsa"}, Config: []string{"HostKeyAlgorithms ssh-rsa", "KexAlgorithms diffie-hellman-group14-sha1", "Ciphers aes128-cbc", "MACs hmac-sha1"}})
	n := s.Node("n01")
	wantReason(t, tryDial(t, sshclient.Options{}, n), sshclient.Protocol, "HostKeyAlgorithms +ssh-rsa")
	old := configured(t, "HostKeyAlgorithms +ssh-rsa\nKexAlgorithms +diffie-hellman-group14-sha1\nCiphers +aes128-cbc\nMACs hmac-sha1\n")
	if err := tryDial(t, sshclient.Options{Config: old}, n); err != nil {
		t.Error(err)
	}
	wantReason(t, tryDial(t, sshclient.Options{Config: configured(t, "Ciphers none-that-exists\n")}, n), sshclient.Settings, "leaves nothing that hopbed knows")
}

// Fifty nodes at once, with a bound.
func TestFifty(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	d := sshclient.New(sshclient.Options{Timeout: patience})
	start := time.Now()
	clients := make([]sshclient.Client, 50)
	errs := sshclient.Each(within(t), len(clients), 16, func(i int) error {
		c, err := d.Dial(within(t), s.Node(fmt.Sprintf("n%02d", i)))
		if err != nil {
			return err
		}
		clients[i] = c
		out, _, err := c.Run(within(t), nil, "echo", fmt.Sprint(i))
		if err == nil && strings.TrimSpace(string(out)) != fmt.Sprint(i) {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	for i, err := range errs {
		if err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
	t.Logf("50 logins and programs in %v", time.Since(start).Round(time.Millisecond))
	for _, c := range clients {
		if c != nil {
			c.Close()
		}
	}
}

func TestEach(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	running, most := make(chan struct{}, 100), 0
	errs := sshclient.Each(ctx, 20, 3, func(i int) error {
		running <- struct{}{}
		if n := len(running); n > 3 {
			most = n
		}
		time.Sleep(time.Millisecond)
		<-running
		if i == 9 {
			cancel()
		}
		return nil
	})
	if most != 0 {
		t.Errorf("%d at once", most)
	}
	if errs[0] != nil || !errors.Is(errs[19], context.Canceled) {
		t.Errorf("%v", errs)
	}
}
