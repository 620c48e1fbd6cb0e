package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/agent/transport/hop/hopfile"
	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
	"github.com/hopbed/hopbed/netem/vtime"
)

const hopHelp = `Hop moves data in blocks, hop by hop: each node has a block whole and
checked before it passes it on, and keeps it until the next node has it. So a
transfer survives links that lose, and links that are down for a while.

Two hosts that reach each other, nothing to configure:
   there$ hopbed hop receive --dir incoming
   here$  hopbed hop send report.pdf there.example.org

Over a relay: every node in the middle runs a daemon that knows its neighbours.
The way back is learnt from what arrives.
   relay$ hopbed hop daemon --peer 10.0.2.7
   here$  hopbed hop send report.pdf 10.0.2.7 --via relay.example.org

A node's id is its IPv4 address, if --id names no other; send takes a random one
for each transfer. Everything goes over one UDP port (4410 at daemons and
receivers, a free one at senders), so that a sender may share a host with a
daemon: hopbed hop send FILE HOST --via localhost.

Neighbours are trusted, and nothing is encrypted: use Hop inside a network that
is yours, or through a tunnel.`

func hopCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name: "hop", Usage: "move files between hosts over Hop",
		Description: hopHelp,
		Subcommands: []*cli.Command{
			{
				Name: "daemon", Usage: "relay for others, and take files into a folder, until Ctrl-C",
				Description: `A daemon relays between its neighbours: those of --peer, and, unless --closed, all
that introduce themselves. With --dir it also takes files. All options may stand
in a file, --config FILE; unknown keys are errors:

   id: 10.0.0.1
   listen: ":4410"
   peers:
     - {addr: 10.0.0.2}                  # its id is asked for
     - {id: 7, addr: "relay:4411", radio: true}
   routes: {10.0.3.7: 7}                 # to a node by way of a neighbour
   gateway: 10.0.0.2                     # to all others
   dir: /srv/incoming
   max-size: 2GB

radio: true marks packets to a neighbour behind a wireless interface for its
background and voice queues, as the paper has it.`,
				Flags: append(nodeFlags(fmt.Sprintf(":%d", hopnet.DefaultPort)), receiveFlags("", "take files into the folder `DIR` (without it the daemon only relays)")...),
				Action: func(c *cli.Context) error {
					o, err := hopOptionsOf(c)
					if err != nil {
						return err
					}
					return o.serve(c, stderr, 0, true)
				},
			},
			{
				Name: "receive", Usage: "take one file, or --count, and end",
				Flags: append(append(nodeFlags(fmt.Sprintf(":%d", hopnet.DefaultPort)), receiveFlags(".", "`DIR` is the folder that files come to, and is made if need be; - writes one file to standard output")...),
					&cli.IntFlag{Name: "count", Usage: "end after `N` files; 0 for never", Value: 1}),
				Action: func(c *cli.Context) error {
					o, err := hopOptionsOf(c)
					if err != nil {
						return err
					}
					count := c.Int("count")
					switch {
					case count < 0:
						return usagef("--count %d: want a number of files, or 0 for no end", count)
					case o.dir == "-" && count != 1:
						return usagef("--dir - takes one file, not --count %d", count)
					}
					return o.serve(c, stderr, count, false)
				},
			},
			{
				Name: "send", Usage: "send files to a host, and wait until they are there", ArgsUsage: "FILE… HOST",
				Description: `FILE may be - for standard input. HOST is where "hopbed hop receive" or a daemon
with --dir runs: a name or address, with :PORT if it is not 4410; with --via, or
routes of one's own, a node id or a name of which the IPv4 address is the id.
A transfer that was broken off goes on where it stopped, when the same file is
sent again within a day.

Exit status: 0 all files are there and checked; 1 some are not; 2 usage; 130
interrupted.`,
				Flags: append(nodeFlags(":0"),
					&cli.StringFlag{Name: "via", Usage: "`HOST[:PORT]` of the neighbour that leads there"},
					&cli.StringFlag{Name: "name", Usage: "`NAME` that the file gets there (one FILE only; - has none of its own)"},
					&cli.DurationFlag{Name: "timeout", Usage: "give up if HOST has not answered for this `TIME`; 0 for never", Value: 30 * time.Second}),
				Action: func(c *cli.Context) error {
					o, err := hopOptionsOf(c)
					if err != nil {
						return err
					}
					return o.send(c, stderr)
				},
			},
		},
	}
}

func receiveFlags(dir, usage string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dir", Usage: usage, Value: dir},
		&cli.StringFlag{Name: "max-size", Usage: "largest `SIZE` of a file that is taken", Value: vtime.Bytes(hopfile.DefaultMaxSize).String()},
		&cli.DurationFlag{Name: "keep", Usage: "keep what came of a transfer that was broken off for `TIME`; 0 keeps nothing", Value: 24 * time.Hour},
	}
}

// folder makes the folder that files come to, if there is none.
func (o *hopOptions) folder(say *speaker) error {
	if o.dir == "" || o.dir == "-" {
		return nil
	}
	i, err := os.Stat(o.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.Mkdir(o.dir, 0o777); err != nil {
			return err
		}
		say.line("made the folder " + o.dir)
	case err != nil:
		return err
	case !i.IsDir():
		return fmt.Errorf("--dir %s is no folder", o.dir)
	}
	return nil
}

// serve runs a node that takes files.
func (o *hopOptions) serve(c *cli.Context, stderr *os.File, count int, daemon bool) error {
	say := &speaker{w: stderr, quiet: o.quiet}
	o.node.Log = say.line
	if err := o.folder(say); err != nil {
		return err
	}
	if o.node.ID == 0 {
		if id, ok := hopnet.HostID(); ok {
			o.node.ID = id
		}
	}
	n, err := hopnet.Open(o.node)
	if err != nil {
		return err
	}
	defer n.Close()
	endOrderly(c.Context)
	say.line(fmt.Sprintf("node %v at UDP %v", n.ID(), n.LocalAddr()))
	if o.dir == "" {
		say.line("relaying; no files are taken (no --dir)")
		<-c.Context.Done()
		return nil
	}
	l, err := n.Listen(hopfile.Service)
	if err != nil {
		return err
	}
	r := hopfile.Receiver{Dir: o.dir, MaxSize: int64(o.maxSize), KeepParts: o.keep}
	if o.dir == "-" {
		r.Out = c.App.Writer
		signal.Ignore(syscall.SIGPIPE) // a reader that has gone is an error, which the sender is told
	} else {
		say.line("files come to " + o.dir)
	}
	r.Done = func(x hopfile.Received) {
		if x.Err != nil {
			say.line(fmt.Sprintf("%s from node %v: not received: %v", fileName(x.Name), x.From, x.Err))
			return
		}
		say.line(fmt.Sprintf("%s from node %v: %v", fileName(x.Name), x.From, vtime.Bytes(x.Bytes)))
	}
	err = r.Serve(c.Context, l, count)
	// The last word to the senders, also that it was broken off: they would try on.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = n.Shutdown(ctx)
	if daemon && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// send sends the files of the command line.
func (o *hopOptions) send(c *cli.Context, stderr *os.File) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef("hopbed hop send wants FILE… HOST: see hopbed hop send --help")
	}
	files, host := args[:len(args)-1], args[len(args)-1]
	name := c.String("name")
	if name != "" && len(files) > 1 {
		return usagef("--name is for one FILE, there are %d", len(files))
	}
	for _, path := range files { // before anything is sent
		if path == "-" {
			continue
		}
		if i, err := os.Stat(path); err != nil {
			return err
		} else if i.IsDir() {
			return isFolder(path)
		}
	}
	if o.node.ID == 0 {
		o.node.ID = hopnet.RandomID()
	}
	say := &speaker{w: stderr, quiet: o.quiet}
	endOrderly(c.Context)
	n, err := hopnet.Open(o.node)
	if err != nil {
		return err
	}
	defer n.Close()
	to, err := o.find(c.Context, n, host, c.String("via"), c.Duration("timeout"))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if err := o.sendOne(c, n, to, f, name, say, stderr); err != nil {
			errs = append(errs, err)
			if c.Context.Err() != nil {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// find makes the receiver's node reachable and returns its id.
func (o *hopOptions) find(ctx context.Context, n *hopnet.Node, host, via string, limit time.Duration) (hopnet.NodeID, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("nothing for %v; is hopbed hop receive, or a daemon, running there, and its UDP port open?", limit))
		defer cancel()
	}
	if via == "" && len(o.node.Peers) == 0 {
		return n.Connect(ctx, host)
	}
	to, err := hostID(ctx, host)
	if err != nil {
		return 0, err
	}
	if via != "" {
		gateway, err := n.Connect(ctx, via)
		if err != nil {
			return 0, err
		}
		n.SetGateway(gateway)
	}
	return to, nil
}

func isFolder(path string) error {
	return fmt.Errorf("%s is a folder: send its files, or a tar of it through -", path)
}

func (o *hopOptions) sendOne(c *cli.Context, n *hopnet.Node, to hopnet.NodeID, path, name string, say *speaker, stderr *os.File) error {
	f := hopfile.File{Name: name, Size: -1}
	if path == "-" {
		if f.Name == "" {
			f.Name = "stdin"
		}
		f.Data = struct{ io.Reader }{os.Stdin}
	} else {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		i, err := file.Stat()
		switch {
		case err != nil:
			return err
		case i.IsDir():
			return isFolder(path)
		case i.Mode().IsRegular():
			f.Size, f.Time = i.Size(), i.ModTime()
		}
		if f.Name == "" {
			f.Name = filepath.Base(path)
		}
		f.Data = file
	}
	bar := newTransferBar(f.Name, f.Size, o.quiet, stderr)
	begun := time.Now()
	ctx := c.Context
	if limit := c.Duration("timeout"); limit > 0 {
		// It bounds the wait for the first answer; a link may be down for longer
		// later.
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		t := time.AfterFunc(limit, func() {
			cancel(fmt.Errorf("node %v has not answered for %v; is hopbed hop receive running there with this id, and has each relay a neighbour or route towards it (its log says)?", to, limit))
		})
		defer t.Stop()
		first := bar.progress
		bar.progress = func(n int64) { t.Stop(); first(n) }
	}
	stall := newStallNote(fileName(f.Name), 30*time.Second, say.line)
	sent, err := hopfile.Send(ctx, n, to, hopfile.Service, f, func(done int64) {
		stall.progress(done)
		bar.progress(done)
	})
	stall.end()
	bar.end()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && c.Context.Err() == nil {
			err = fmt.Errorf("%s: %w", path, cause)
		} else if errors.Is(err, hopnet.ErrRefused) {
			err = fmt.Errorf("%s: %w; a daemon takes files only with --dir", path, err)
		}
		return err
	}
	resumed := ""
	if sent.Resume > 0 {
		resumed = fmt.Sprintf(", %v of them were there", vtime.Bytes(sent.Resume))
	}
	took := time.Since(begun)
	say.line(fmt.Sprintf("%s: %v%s in %s, %s, sha256 %x", fileName(sent.Name), vtime.Bytes(sent.Bytes), resumed, roundTime(took),
		transferRate(float64(sent.Bytes-sent.Resume)*8/max(took.Seconds(), 1e-9)), sent.SHA256))
	return nil
}

// fileName is a name from elsewhere, fit for a terminal.
func fileName(s string) string {
	if s = clean(strings.TrimSpace(s)); s == "" {
		return "(no name)"
	}
	return s
}

// transferRate is rate, for the rates of wires, too.
func transferRate(bps float64) string {
	if bps >= 1e9 {
		return fmt.Sprintf("%.2f Gb/s", bps/1e9)
	}
	return rate(bps)
}
