package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/route"
	"github.com/hopbed/hopbed/netem/tap"
)

// Part is the name (argv[0]) under which a node's traffic generator runs.
const Part = "hopbed-bench-node"

// An order is one line on the part's standard input, answered by one line.
type order struct {
	SetUp *setUp  `json:"set_up,omitempty"`
	Sink  *sink   `json:"sink,omitempty"`
	Send  *source `json:"send,omitempty"`
	Count bool    `json:"count,omitempty"`

	Hop *hopOrder `json:"hop,omitempty"`
}

type setUp struct {
	Node     int   `json:"node"`
	Wired    bool  `json:"wired,omitempty"` // by an interface wire, instead of the radio's
	NextHops []int `json:"next_hops"`       // by destination; -1 = none
}

// wire is the interface of a wired node.
const wire = "eth0"

type sink struct {
	Network string `json:"network"` // "udp" or "tcp"
	Port    int    `json:"port"`
}

type source struct {
	Network string         `json:"network"`
	To      netip.AddrPort `json:"to"`
	Rate    int            `json:"rate"` // udp: packets of 1500 B a second
}

type answer struct {
	Error    string `json:"error,omitempty"`
	Greeting bool   `json:"greeting,omitempty"`
	Received uint64 `json:"received"` // payload bytes since the start
	Failed   string `json:"failed,omitempty"`

	CPU    time.Duration `json:"cpu,omitempty"` // processor time of the process, or of the program that ended
	Note   string        `json:"note,omitempty"`
	Output string        `json:"output,omitempty"`
}

// payload of a UDP packet that is 1500 bytes long at the IP layer.
const payload = 1500 - 28

// NodeMain is the part's main function.
func NodeMain() int {
	g := &generator{}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(answer{Greeting: true}); err != nil {
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20) // orders are short; answers may hold a program's output
	for in.Scan() {
		var o order
		a := answer{CPU: processorTime(unix.RUSAGE_SELF)}
		err := json.Unmarshal(in.Bytes(), &o)
		switch {
		case err != nil:
		case o.Hop != nil:
			err = g.obeyHop(o.Hop, &a)
		default:
			err = g.obey(&o)
		}
		if err != nil {
			a.Error = err.Error()
		}
		a.Received = g.received.Load()
		if f, ok := g.failed.Load().(string); ok {
			a.Failed = f
		}
		if err := out.Encode(a); err != nil {
			return 1
		}
	}
	return 0
}

type generator struct {
	received atomic.Uint64
	failed   atomic.Value // string: the first failure of a flow
	once     sync.Once
	hop      hopEnd
}

func (g *generator) obey(o *order) error {
	switch {
	case o.SetUp != nil:
		return setUpNode(o.SetUp)
	case o.Sink != nil && o.Sink.Network == "udp":
		return g.sinkUDP(o.Sink.Port)
	case o.Sink != nil:
		return g.sinkTCP(o.Sink.Port)
	case o.Send != nil && o.Send.Network == "udp":
		return g.sendUDP(o.Send)
	case o.Send != nil:
		go g.sendTCP(o.Send)
		return nil
	case o.Count:
		return nil
	}
	return errors.New("an order without content")
}

func (g *generator) fail(err error) {
	g.once.Do(func() { g.failed.Store(err.Error()) })
}

// setUpNode gives the node its address, settings and routes.
func setUpNode(s *setUp) error {
	for _, c := range tap.NodeSysctls() {
		path := "/proc/sys/" + strings.ReplaceAll(c.Key, ".", "/")
		if err := os.WriteFile(path, []byte(c.Value), 0); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("set %s: %w", c.Key, err)
		}
	}
	name, mac := tap.Interface, tap.HardwareAddr
	if s.Wired {
		name, mac = wire, func(i int) tap.HardwareAddress { return tap.PipeHardwareAddr(i, 0) }
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: tap.Addr(s.Node).AsSlice(), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("address %v: %w", addr.IPNet, err)
	}
	var routes []proto.Route
	var neighbours []proto.Neighbour
	known := map[int]bool{}
	for dst, via := range s.NextHops {
		if via < 0 || dst == s.Node {
			continue
		}
		r := proto.Route{Interface: name, Dst: netip.PrefixFrom(tap.Addr(dst), 32)}
		if via != dst {
			r.Via = tap.Addr(via)
		}
		routes = append(routes, r)
		if !known[via] {
			known[via] = true
			neighbours = append(neighbours, proto.Neighbour{Interface: name, Addr: tap.Addr(via), HardwareAddress: mac(via).String()})
		}
	}
	return route.NewTable(map[string]int{name: link.Attrs().Index}).Replace(nil, routes, neighbours) // the namespace ends with it
}

func (g *generator) sinkUDP(port int) error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
	if err != nil {
		return err
	}
	go func() {
		b := make([]byte, 2048)
		for {
			n, _, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				g.fail(err)
				return
			}
			g.received.Add(uint64(n))
		}
	}()
	return nil
}

func (g *generator) sinkTCP(port int) error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{Port: port})
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				g.fail(err)
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := c.Read(b)
					g.received.Add(uint64(n))
					if err != nil {
						if err != io.EOF {
							g.fail(err)
						}
						return
					}
				}
			}()
		}
	}()
	return nil
}

// sendUDP sends at a fixed rate, slightly above what the medium carries: a
// sender without any bound would spend the processor on packets that the queue
// refuses.
func (g *generator) sendUDP(s *source) error {
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(s.To))
	if err != nil {
		return err
	}
	go func() {
		b := make([]byte, payload)
		t0, sent := time.Now(), 0
		for {
			time.Sleep(4 * time.Millisecond)
			due := int(time.Since(t0).Seconds() * float64(s.Rate))
			sent = max(sent, due-64) // a late sender does not catch up beyond one burst
			for ; sent < due; sent++ {
				_, _ = c.Write(b) // a full queue is not an error here
			}
		}
	}()
	return nil
}

func (g *generator) sendTCP(s *source) {
	d := net.Dialer{Timeout: 30 * time.Second}
	c, err := d.Dial("tcp4", s.To.String())
	if err != nil {
		g.fail(err)
		return
	}
	defer c.Close()
	for b := make([]byte, 64<<10); ; {
		if _, err := c.Write(b); err != nil {
			g.fail(err)
			return
		}
	}
}
