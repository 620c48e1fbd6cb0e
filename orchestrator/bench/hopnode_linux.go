package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
)

// hopOrder is an order of Hop (the benchmark) to one of its ends.
type hopOrder struct {
	Join     int           `json:"join,omitempty"` // make a veth pair to the namespace of this process
	Up       string        `json:"up,omitempty"`   // give the veth's end this address
	Serve    bool          `json:"serve,omitempty"`
	Send     string        `json:"send,omitempty"`   // a Hop stream to this address
	Single   bool          `json:"single,omitempty"` // without GSO and GRO
	TCPServe bool          `json:"tcp_serve,omitempty"`
	TCPSend  string        `json:"tcp_send,omitempty"`
	Stop     bool          `json:"stop,omitempty"` // what was begun above
	Program  []string      `json:"program,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"` // for the program, so long
}

// hopEnd is what an end has under way.
type hopEnd struct {
	stop    func()
	note    func() string
	program *exec.Cmd
	output  bytes.Buffer
	before  time.Duration // processor time of children when it began
}

const hopPort, tcpPort = "4410", 4411

func (g *generator) obeyHop(o *hopOrder, a *answer) error {
	switch {
	case o.Join != 0:
		link := netlink.NewLinkAttrs()
		link.Name, link.MTU = vethName, 1500
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: link, PeerName: vethName, PeerMTU: 1500, PeerNamespace: netlink.NsPid(o.Join)}); err != nil {
			return fmt.Errorf("veth pair: %w", err)
		}
		return nil
	case o.Up != "":
		return errors.Join(bringUp("lo", "127.0.0.1/8"), bringUp(vethName, o.Up+"/24"))
	case o.Serve:
		return g.serveHop(o.Single)
	case o.Send != "":
		return g.sendHop(o.Send, o.Single)
	case o.TCPServe:
		return g.serveTCP()
	case o.TCPSend != "":
		return g.streamTCP(o.TCPSend)
	case o.Stop:
		if g.hop.note != nil {
			a.Note = g.hop.note()
		}
		if g.hop.stop != nil {
			g.hop.stop()
		}
		g.hop.stop, g.hop.note = nil, nil
		return nil
	case o.Program != nil:
		return g.startProgram(o.Program)
	case o.Wait > 0:
		return g.waitProgram(o.Wait, a)
	}
	return errors.New("an order without content")
}

func bringUp(name, addr string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	a, err := netlink.ParseAddr(addr)
	if err == nil {
		err = netlink.AddrReplace(l, a)
	}
	if err != nil {
		return fmt.Errorf("address %s: %w", addr, err)
	}
	return netlink.LinkSetUp(l)
}

// processorTime is that of this process and of the children that have ended.
func processorTime(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// counted counts what is written to it.
type counted struct{ g *generator }

func (c counted) Write(p []byte) (int, error) {
	c.g.received.Add(uint64(len(p)))
	return len(p), nil
}

func (g *generator) serveHop(single bool) error {
	n, err := hopnet.Open(hopnet.Config{ID: 2, Listen: ":" + hopPort, Open: true, NoOffload: single})
	if err != nil {
		return err
	}
	l, err := n.Listen(1)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	g.hop.stop = func() { n.Close() }
	go func() {
		c, err := l.AcceptConn(context.Background())
		if err == nil {
			_, _ = c.WriteTo(counted{g}) // it ends with the node
		}
	}()
	return nil
}

func (g *generator) sendHop(to string, single bool) error {
	n, err := hopnet.Open(hopnet.Config{ID: 1, NoOffload: single})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := n.Connect(ctx, net.JoinHostPort(to, hopPort))
	if err != nil {
		return errors.Join(err, n.Close())
	}
	c, err := n.Dial(ctx, id, 1)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	var over sync.WaitGroup
	over.Go(func() {
		for b := make([]byte, 256<<10); ; {
			if _, err := c.Write(b); err != nil {
				if !errors.Is(err, net.ErrClosed) {
					g.fail(err)
				}
				return
			}
		}
	})
	g.hop.note = func() string {
		s := n.Counts()
		return fmt.Sprintf("%.0f datagrams per system call, %d of %d packets sent again", float64(s.Socket.Sent)/float64(max(1, s.Socket.SendCalls)), s.Again, s.Hop.DataSent)
	}
	g.hop.stop = func() { n.Close(); over.Wait() }
	return nil
}

func (g *generator) serveTCP() error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{Port: tcpPort})
	if err != nil {
		return err
	}
	g.hop.stop = func() { l.Close() }
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for b := make([]byte, 256<<10); ; {
			n, err := c.Read(b)
			g.received.Add(uint64(n))
			if err != nil {
				return
			}
		}
	}()
	return nil
}

func (g *generator) streamTCP(to string) error {
	c, err := net.DialTimeout("tcp4", net.JoinHostPort(to, fmt.Sprint(tcpPort)), 10*time.Second)
	if err != nil {
		return err
	}
	g.hop.stop = func() { c.Close() }
	go func() {
		for b := make([]byte, 64<<10); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	return nil
}

func (g *generator) startProgram(args []string) error {
	g.hop.output.Reset()
	g.hop.program = exec.Command(args[0], args[1:]...)
	g.hop.program.Stdout, g.hop.program.Stderr = &g.hop.output, &g.hop.output
	g.hop.before = processorTime(unix.RUSAGE_CHILDREN)
	return g.hop.program.Start()
}

// waitProgram waits for the program's end; what does not end is killed.
func (g *generator) waitProgram(limit time.Duration, a *answer) error {
	p := g.hop.program
	if p == nil {
		return errors.New("no program was started")
	}
	g.hop.program = nil
	t := time.AfterFunc(limit, func() { _ = p.Process.Kill() })
	err := p.Wait()
	t.Stop()
	a.Output = g.hop.output.String()
	a.CPU = processorTime(unix.RUSAGE_CHILDREN) - g.hop.before
	if err != nil && a.Output == "" {
		return fmt.Errorf("%s: %w", p.Args[0], err)
	}
	return nil
}
