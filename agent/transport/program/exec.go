//go:build linux

package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Exec is the driver of "exec": programs of the user's own, one at each end of a
// flow, and where they want it one at each node between. Their contract is in
// DESIGN.md.
type Exec struct{}

// Family returns "exec".
func (Exec) Family() string { return "exec" }

// Wanted is false: what does not concern a flow's own programs, the kernel
// forwards.
func (Exec) Wanted(*transport.Node) bool { return false }

// Check refuses a flow without programs, workloads of messages and the options
// of other transports.
func (Exec) Check(f *proto.Flow) error {
	o := f.Options
	if f.Transport != "exec" {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: "exec"}
	}
	if f.Workload.HasMessages() {
		return &proto.Error{Code: proto.CodeOrder, What: "workload", Got: string(f.Workload.Kind), Detail: "exec cannot carry it"}
	}
	if p := o.Program; p == nil || len(p.Send) == 0 || len(p.Receive) == 0 {
		return &proto.Error{Code: proto.CodeOrder, What: "option program", Detail: "the programs that send and receive are missing"}
	}
	return refuse("exec", map[string]bool{"mss": o.MSS != 0, "send_buffer": o.SendBuffer != 0, "receive_buffer": o.ReceiveBuffer != 0, "not_sent_low_water": o.NotSentLow != 0,
		"nodelay": o.NoDelay, "dscp": o.DSCP != 0, "relay_buffer": o.RelayBuffer != 0, "block_size": o.BlockSize != 0, "connect_within": o.ConnectWithin != 0,
		"receive_window": o.ReceiveWindow != 0, "cwnd_cap": o.CwndCap != 0, "rate": o.Rate != 0, "packet_size": o.PacketSize != 0})
}

// execEndpoint is the node's part in all flows of exec.
type execEndpoint struct {
	node    *transport.Node
	spawner *spawner
	sides   []*execSide

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
}

// Open looks for the programs.
func (Exec) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &execEndpoint{node: n, spawner: newSpawner()}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, f := range flows {
		side, _ := n.Side(&f)
		s := &execSide{ep: e, flow: f, side: side, woken: make(chan struct{}, 1), result: proto.FlowResult{Flow: f.ID, Side: side}}
		switch side {
		case proto.Source:
			s.argv = f.Options.Program.Send
		case proto.Destination:
			s.argv = f.Options.Program.Receive
		default:
			s.argv = f.Options.Program.Relay
		}
		if len(s.argv) == 0 {
			continue
		}
		if err := Find(s.argv[0], f.Options.Program.Dir); err != nil {
			return nil, inFlow(errors.Join(err, e.Close()), f.ID)
		}
		e.sides = append(e.sides, s)
	}
	return e, nil
}

// Find says whether a program can be started: one in PATH, or, when its
// name has a slash, a file, relative to the folder dir. The error has the code
// proto.CodeUnavailable.
func Find(name, dir string) error {
	_, err := exec.LookPath(place(name, dir))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		return missing(name, "")
	}
	return &proto.Error{Code: proto.CodeUnavailable, What: name, Detail: "it cannot be run: " + err.Error(), Remedy: "name an executable file, or a program in PATH"}
}

// place is where a program is: a path is relative to the folder of its flow.
func place(name, dir string) string {
	if dir != "" && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return filepath.Join(dir, name)
	}
	return name
}

// Setups is empty: the programs say what they want to say while they run.
func (e *execEndpoint) Setups() []proto.FlowSetup { return nil }

// Start starts the programs that receive and relay, and schedules those that
// send.
func (e *execEndpoint) Start(sched transport.Schedule) error {
	for _, s := range e.sides {
		if err := s.begin(sched); err != nil {
			return inFlow(err, s.flow.ID)
		}
	}
	for _, s := range e.sides {
		e.wg.Go(s.run)
	}
	return nil
}

// Sample appends one sample per flow and side.
func (e *execEndpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, s := range e.sides {
		if sample, ok := s.sample(now); ok {
			to = append(to, sample)
		}
	}
	return to
}

// Stop ends the programs, in about a second at most.
func (e *execEndpoint) Stop() {
	e.cancel()
	e.wg.Wait()
}

// Results returns one result per flow and side.
func (e *execEndpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sides {
		out = append(out, s.outcome())
	}
	return out
}

// Facts adds nothing.
func (e *execEndpoint) Facts(*proto.NodeFacts) {}

// Close ends what still runs.
func (e *execEndpoint) Close() error {
	e.Stop()
	e.once.Do(e.spawner.close)
	return nil
}

// variables are what a program is told, as its environment. Addresses are IPv4;
// moments are nanoseconds of CLOCK_MONOTONIC.
func (s *execSide) variables() []string {
	f, n := &s.flow, s.ep.node
	side := map[proto.Side]string{proto.Source: "send", proto.Destination: "receive", proto.Relay: "relay"}[s.side]
	var path []string
	prev, next := "", ""
	for i, id := range f.Path {
		path = append(path, n.Addrs[id].String())
		if id != n.ID {
			continue
		}
		if i > 0 {
			prev = n.Addrs[f.Path[i-1]].String()
		}
		if i+1 < len(f.Path) {
			next = n.Addrs[f.Path[i+1]].String()
		}
	}
	return []string{
		"HOPBED_SIDE=" + side, "HOPBED_NODE=" + n.Name, fmt.Sprintf("HOPBED_FLOW=%d", f.ID),
		"HOPBED_ADDR=" + n.Addr.String(), "HOPBED_SRC=" + f.SrcAddr.String(), "HOPBED_DST=" + f.DstAddr.String(),
		fmt.Sprintf("HOPBED_PORT=%d", transport.FlowPort+f.ID),
		"HOPBED_PATH=" + strings.Join(path, ","), "HOPBED_PREV=" + prev, "HOPBED_NEXT=" + next,
		"HOPBED_WORKLOAD=" + string(f.Workload.Kind), fmt.Sprintf("HOPBED_SIZE=%d", int64(f.Workload.Size)),
		fmt.Sprintf("HOPBED_START_NS=%d", s.epoch+int64(f.Start)), fmt.Sprintf("HOPBED_STOP_NS=%d", s.epoch+int64(s.stop)),
		fmt.Sprintf("HOPBED_MEASURE_NS=%d", s.epoch+int64(s.sched.Warmup)), fmt.Sprintf("HOPBED_END_NS=%d", s.epoch+int64(s.sched.End)),
	}
}
