package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
	"github.com/hopbed/hopbed/netem/vtime"
)

// hopOptions are what the command line and --config say about a Hop node.
type hopOptions struct {
	node    hopnet.Config
	dir     string
	maxSize vtime.Bytes
	keep    time.Duration
	quiet   bool
}

func nodeFlags(listen string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "id", Usage: "this node's `ID`, a number or IPv4 address"},
		&cli.StringFlag{Name: "listen", Usage: "UDP address `[HOST]:PORT` of this node", Value: listen},
		&cli.StringSliceFlag{Name: "peer", Usage: "`[ID=]HOST[:PORT]` of a neighbour; may be repeated"},
		&cli.StringSliceFlag{Name: "route", Usage: "the neighbour towards a node, as `NODE=NEIGHBOUR` (ids); may be repeated"},
		&cli.StringFlag{Name: "gateway", Usage: "`ID` of the neighbour towards all other nodes"},
		&cli.BoolFlag{Name: "closed", Usage: "take packets of --peer neighbours only, of none that introduce themselves"},
		&cli.StringFlag{Name: "config", Usage: "read these options from the YAML `FILE`; the command line comes first"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but errors"},
	}
}

// hopFile is --config: the options by their names.
type hopFile struct {
	ID      string            `yaml:"id"`
	Listen  string            `yaml:"listen"`
	Peers   []hopFilePeer     `yaml:"peers"`
	Routes  map[string]string `yaml:"routes"`
	Gateway string            `yaml:"gateway"`
	Closed  bool              `yaml:"closed"`
	Dir     string            `yaml:"dir"`
	MaxSize string            `yaml:"max-size"`
	Keep    string            `yaml:"keep"`
}

type hopFilePeer struct {
	ID    string `yaml:"id"`
	Addr  string `yaml:"addr"`
	Radio bool   `yaml:"radio"`
}

func readHopFile(path string) (*hopFile, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &hopFile{}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, usagef("%s: %v", path, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, usagef("%s: more than one document", path)
	}
	return f, nil
}

// hopOptionsOf joins the command line and its --config.
func hopOptionsOf(c *cli.Context) (*hopOptions, error) {
	f := &hopFile{}
	if path := c.String("config"); path != "" {
		var err error
		if f, err = readHopFile(path); err != nil {
			return nil, err
		}
	}
	pick := func(flag, file string) string { // the command line, the file, the default
		if file != "" && !c.IsSet(flag) {
			return file
		}
		return c.String(flag)
	}
	o := &hopOptions{quiet: c.Bool("quiet")}
	o.node.Listen = pick("listen", f.Listen)
	o.node.Open = !c.Bool("closed") && !f.Closed
	var err error
	if s := pick("id", f.ID); s != "" {
		if o.node.ID, err = hopnet.ParseNodeID(s); err != nil {
			return nil, usagef("--id: %v", err)
		}
	}
	if s := pick("gateway", f.Gateway); s != "" {
		if o.node.Gateway, err = hopnet.ParseNodeID(s); err != nil {
			return nil, usagef("--gateway: %v", err)
		}
	}
	for _, p := range f.Peers {
		x := hopnet.Peer{Addr: p.Addr, Radio: p.Radio}
		if p.ID != "" {
			if x.ID, err = hopnet.ParseNodeID(p.ID); err != nil {
				return nil, usagef("%s: peer %s: %v", c.String("config"), p.Addr, err)
			}
		}
		o.node.Peers = append(o.node.Peers, x)
	}
	for _, s := range c.StringSlice("peer") {
		x := hopnet.Peer{Addr: s}
		if id, addr, ok := strings.Cut(s, "="); ok {
			x.Addr = addr
			if x.ID, err = hopnet.ParseNodeID(id); err != nil {
				return nil, usagef("--peer %s: %v", s, err)
			}
		}
		o.node.Peers = append(o.node.Peers, x)
	}
	o.node.Routes = map[hopnet.NodeID]hopnet.NodeID{}
	route := func(dst, via string) error {
		d, err := hopnet.ParseNodeID(dst)
		v, err2 := hopnet.ParseNodeID(via)
		if err := errors.Join(err, err2); err != nil {
			return usagef("route %s=%s: %v", dst, via, err)
		}
		o.node.Routes[d] = v
		return nil
	}
	for dst, via := range f.Routes {
		if err := route(dst, via); err != nil {
			return nil, err
		}
	}
	for _, s := range c.StringSlice("route") {
		dst, via, ok := strings.Cut(s, "=")
		if !ok {
			return nil, usagef("--route %s: want NODE=NEIGHBOUR", s)
		}
		if err := route(dst, via); err != nil {
			return nil, err
		}
	}
	return o, o.receiving(c, f, pick)
}

// receiving reads the options of those who take files.
func (o *hopOptions) receiving(c *cli.Context, f *hopFile, pick func(flag, file string) string) (err error) {
	if c.Command.Name == "send" {
		return nil
	}
	o.dir = pick("dir", f.Dir)
	if o.maxSize, err = vtime.ParseBytes(pick("max-size", f.MaxSize)); err != nil || o.maxSize < 1 {
		return usagef("--max-size %s: want a size such as 500MB", pick("max-size", f.MaxSize))
	}
	o.keep = c.Duration("keep")
	if f.Keep != "" && !c.IsSet("keep") {
		if o.keep, err = time.ParseDuration(f.Keep); err != nil {
			return usagef("%s: keep: %v", c.String("config"), err)
		}
	}
	switch {
	case o.keep < 0:
		return usagef("--keep %v is negative", o.keep)
	case o.keep == 0:
		o.keep = -1
	}
	return nil
}

// hostID is the id of a node: given as such, or that of a host's IPv4 address.
func hostID(ctx context.Context, host string) (hopnet.NodeID, error) {
	if id, err := hopnet.ParseNodeID(host); err == nil {
		return id, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return 0, fmt.Errorf("%q is no node id, and no host with an IPv4 address: %w", host, err)
	}
	for _, a := range addrs {
		if id := hopnet.IDOf(netip.Addr(a)); id.Valid() {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%q has no IPv4 address that is a node id", host)
}

// speaker writes lines, from many goroutines.
type speaker struct {
	mu    sync.Mutex
	w     io.Writer
	quiet bool
}

func (s *speaker) line(text string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.w, clean(text))
}

// transferBar shows how far a transfer is.
type transferBar struct {
	progress func(done int64)
	bar      *progressbar.ProgressBar
}

// newTransferBar shows a bar on a terminal, a line every few seconds elsewhere.
func newTransferBar(name string, size int64, quiet bool, stderr *os.File) *transferBar {
	t := &transferBar{progress: func(int64) {}}
	switch {
	case quiet:
	case term.IsTerminal(int(stderr.Fd())):
		t.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(fileName(name)),
			progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
		t.progress = func(done int64) { _ = t.bar.Set64(done) }
	default:
		last := time.Now()
		t.progress = func(done int64) {
			if time.Since(last) < 5*time.Second {
				return
			}
			last = time.Now()
			of := ""
			if size >= 0 {
				of = " of " + vtime.Bytes(size).String()
			}
			fmt.Fprintf(stderr, "%s: %v%s\n", fileName(name), vtime.Bytes(done), of)
		}
	}
	return t
}

func (t *transferBar) end() {
	if t.bar != nil {
		_ = t.bar.Clear()
	}
}

// stallNote says, once for each standstill, that a transfer has begun and does not
// go on: it is not given up, because a link may be down for long.
type stallNote struct {
	timer *time.Timer
	after time.Duration
	done  atomic.Int64
}

func newStallNote(name string, after time.Duration, say func(string)) *stallNote {
	s := &stallNote{after: after}
	s.timer = time.AfterFunc(math.MaxInt64, func() {
		say(fmt.Sprintf("%s: nothing has gone on for %v, at %v; still trying, Ctrl-C ends it", name, after, vtime.Bytes(s.done.Load())))
	})
	return s
}

// progress is told of the bytes that have been given to the network.
func (s *stallNote) progress(done int64) {
	s.done.Store(done)
	s.timer.Reset(s.after)
}

func (s *stallNote) end() { s.timer.Stop() }
