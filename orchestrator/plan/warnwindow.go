package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// window is a bound of the payload that a connection may have under way.
type window struct {
	option string // what sets it; the same for all connections that it bounds
	text   string // what it is and how large
	size   vtime.Bytes
	tuned  bool // where the kernel's tuning ends: nobody asked for it
}

// connection is a flow's TCP connection, or one of those of hop-by-hop TCP.
type connection struct {
	from, to    int // nodes
	there, back []topology.Egress
	mss         vtime.Bytes
	windows     []window
}

// windowWarnings compares the windows of all points' connections with the
// bandwidth-delay product of their paths: the bottleneck's equal share of rate,
// over the flows that pass it, times the delay of the wires both ways. It tells of
// each option the worst, and in how many points it is found. A network that
// cannot be laid out has none; Scenario says why.
func (p *Plan) windowWarnings() []string {
	type finding struct {
		option, text string
		share        float64
		points, last int
	}
	var found []*finding
	for _, r := range p.Runs {
		if r.Repetition > 1 || len(r.Config().Topology.Pipes) == 0 {
			continue // no wire, no delay
		}
		s, err := r.Scenario()
		if err != nil {
			continue
		}
		users := s.users()
		for _, f := range s.Flows {
			if !takes(r.Config(), f) {
				continue
			}
			for _, k := range s.connections(f) {
				rate, shared := s.share(k.there, users)
				rtt := s.delay(k.there) + s.delay(k.back)
				product := float64(rate) / 8 * rtt.Seconds() / float64(shared)
				for _, w := range k.tooSmall(product) {
					n := slices.IndexFunc(found, func(f *finding) bool { return f.option == w.option })
					if n < 0 {
						n = len(found)
						found = append(found, &finding{option: w.option, share: 2, last: -1})
					}
					to := found[n]
					if to.last != r.Index {
						to.last = r.Index
						to.points++
					}
					size := onTheWire(w.size, k.mss)
					if size/product >= to.share {
						continue
					}
					to.share = size / product
					part := rate.String()
					if shared > 1 {
						part = fmt.Sprintf("%v / %d flows", rate, shared)
					}
					to.text = fmt.Sprintf("%s: %s, %s %% of the bandwidth-delay product from %s to %s, flows[%d] (%s × %v = %s): at most %s of goodput",
						w.option, w.text, percent(to.share), s.Topology.Nodes[k.from].Name, s.Topology.Nodes[k.to].Name, f.Group,
						part, rtt, decimal(product, "B"), decimal(8*float64(w.size)/rtt.Seconds(), "b/s"))
				}
			}
		}
	}
	var out []string
	for _, f := range found {
		if f.points > 1 {
			f.text += fmt.Sprintf(" (the worst of %d points)", f.points)
		}
		out = append(out, f.text)
	}
	return out
}

// tooSmall returns the windows that keep a connection below the product in
// bytes. Where the kernel's tuning ends is worth a word only if nothing that the
// file asks for is smaller.
func (k *connection) tooSmall(product float64) []window {
	if product == 0 {
		return nil
	}
	least := slices.MinFunc(k.windows, func(a, b window) int { return cmp.Compare(a.size, b.size) })
	var out []window
	for _, w := range k.windows {
		if onTheWire(w.size, k.mss) < product && (!w.tuned || w == least) {
			out = append(out, w)
		}
	}
	return out
}

// connections are those of a flow over TCP; a flow of another transport has
// none. Of hop-by-hop TCP and of bundles each hop is one.
func (s *Scenario) connections(f topology.Flow) []connection {
	c := s.Config()
	var out []connection
	switch c.Flows[f.Group].Transport.Family() {
	case spec.FamilyTCP, spec.FamilyCoopTCP:
		out = append(out, connection{f.Src, f.Dst, s.links(f.Path), s.links(s.Topology.Routes.Path(f.Dst, f.Src)), mss(c), tcpWindows(c)})
	case spec.FamilyHopByHopTCP:
		for i := range f.Hops() {
			a, b := f.Path[i], f.Path[i+1]
			out = append(out, connection{a, b, s.Topology.LinkPath(a, b), s.Topology.LinkPath(b, a), segment, relayWindows(c, i == 0, i+1 == f.Hops())})
		}
	case spec.FamilyBundle:
		for i := range f.Hops() {
			a, b := f.Path[i], f.Path[i+1]
			out = append(out, connection{a, b, s.Topology.LinkPath(a, b), s.Topology.LinkPath(b, a), segment, bundleWindows()})
		}
	}
	return out
}

// links are the links of a path of nodes, the bridges' ones among them.
func (s *Scenario) links(path []int) []topology.Egress {
	var out []topology.Egress
	for i := 1; i < len(path); i++ {
		out = append(out, s.Topology.LinkPath(path[i-1], path[i])...)
	}
	return out
}

// direction names what flows share: one direction of a wire, or the air.
type direction struct{ pipe, end int }

func of(e topology.Egress) direction {
	if e.Pipe == topology.RadioEgress {
		return direction{pipe: topology.RadioEgress}
	}
	return direction{e.Pipe, e.End}
}

// takes tells that a flow sends as much as it can, in the whole of its transfer: a
// window below the product is no bound for one that has little to send.
func takes(c *spec.Config, f topology.Flow) bool { return !c.Flows[f.Group].Workload.HasMessages() }

// users counts the flows that pass each direction, whenever they do, and take
// what they get.
func (s *Scenario) users() map[direction]int {
	n := map[direction]int{}
	for _, f := range s.Flows {
		if !takes(s.Config(), f) {
			continue
		}
		seen := map[direction]bool{}
		for _, e := range s.links(f.Path) {
			if d := of(e); !seen[d] {
				seen[d] = true
				n[d]++
			}
		}
	}
	return n
}

// share returns the rate of the bottleneck of a path, and by how many flows it is
// divided; 0 where nothing limits it.
func (s *Scenario) share(path []topology.Egress, users map[direction]int) (rate vtime.BitRate, flows int) {
	flows = 1
	for _, e := range path {
		r, n := s.Config().Radio.Rate, users[of(e)]
		if e.Pipe != topology.RadioEgress {
			r, _ = s.inForce(&s.Topology.Pipes[e.Pipe].Config[e.End])
		}
		if r > 0 && (rate == 0 || float64(r)/float64(n) < float64(rate)/float64(flows)) {
			rate, flows = r, n
		}
	}
	return rate, flows
}

// delay is the propagation delay of a path: the wires', since the air has none.
func (s *Scenario) delay(path []topology.Egress) vtime.Duration {
	sum := vtime.Duration(0)
	for _, e := range path {
		if e.Pipe != topology.RadioEgress {
			_, d := s.inForce(&s.Topology.Pipes[e.Pipe].Config[e.End])
			sum += d
		}
	}
	return sum
}

// inForce is a wire's rate and delay when the measured interval begins.
func (s *Scenario) inForce(c *pipe.Config) (vtime.BitRate, vtime.Duration) {
	rate, delay := c.Rate, c.Delay
	if c.Trace != nil {
		rate = c.Trace.Rate()
	}
	for _, ch := range c.Schedule {
		if ch.At > vtime.Time(s.Config().Warmup) {
			break
		}
		if ch.Rate != nil {
			rate = *ch.Rate
		}
		if ch.Delay != nil {
			delay = *ch.Delay
		}
	}
	return rate, delay
}

// kernel holds the sizes that Linux uses where the file says nothing.
var kernel = tcp.DefaultConfig()

// The headers of IPv4 and TCP, and TCP's timestamps, which the MSS counts as
// payload (RFC 6691), in bytes.
const (
	headers    = 40
	timestamps = 12
)

// segment is the MSS where the file says nothing.
var segment = vtime.Bytes(kernel.MSS)

// mss is that of end-to-end TCP.
func mss(c *spec.Config) vtime.Bytes {
	if m := c.Transports.TCP.MSS; m > 0 {
		return m
	}
	return segment
}

// onTheWire is payload with its headers, in bytes.
func onTheWire(payload, mss vtime.Bytes) float64 {
	return float64(payload) * float64(mss+headers) / float64(mss-timestamps)
}

// held is the window that a receive buffer of so much memory makes: what full
// segments fill of theirs, or the half with which the kernel begins
// (tcp_win_from_space).
func held(memory, mss vtime.Bytes) vtime.Bytes {
	return max(memory/2, memory*(mss-timestamps)/(kernel.Truesize+mss-segment))
}

// tcpWindows are the bounds of end-to-end TCP. The kernel doubles the buffers
// that are asked for (socket(7)).
func tcpWindows(c *spec.Config) []window {
	const at = "transports.tcp."
	o, m := c.Transports.TCP, mss(c)
	w := []window{{at + "send-buffer", "left out, the kernel makes it as large as " + decimal(float64(kernel.SendBufferMax), "B"), kernel.SendBufferMax, true}}
	if o.SendBuffer > 0 {
		w[0] = window{at + "send-buffer", fmt.Sprintf("%v, doubled by the kernel, hold %s", o.SendBuffer, decimal(float64(2*o.SendBuffer), "B")), 2 * o.SendBuffer, false}
	}
	if n := o.ReceiveWindow; n > 0 {
		size := vtime.Bytes(n) * m
		w = append(w, window{at + "receive-window", segments(n, m), size, false})
	}
	if n := o.CwndCap; n > 0 {
		size := vtime.Bytes(n) * (m - timestamps)
		w = append(w, window{at + "cwnd-cap", segments(n, m-timestamps), size, false})
	}
	switch size := held(2*o.ReceiveBuffer, m); {
	case o.ReceiveBuffer > 0:
		w = append(w, window{at + "receive-buffer", fmt.Sprintf("%v, doubled by the kernel, make a window of %s", o.ReceiveBuffer, decimal(float64(size), "B")), size, false})
	case o.ReceiveWindow == 0:
		size = held(kernel.RecvBufferMax, m)
		w = append(w, window{at + "receive-buffer", fmt.Sprintf("left out, the kernel makes it as large as %s, a window of %s", decimal(float64(kernel.RecvBufferMax), "B"), decimal(float64(size), "B")), size, true})
	}
	return w
}

// segments says how much a window of n segments is.
func segments(n int, of vtime.Bytes) string {
	return fmt.Sprintf("%d × %v = %s", n, of, decimal(float64(vtime.Bytes(n)*of), "B"))
}

// relayWindows are the bounds of one hop of hop-by-hop TCP. A relay asks for an
// eighth of its buffer at either socket; source and destination have ordinary
// ones, of which the source's is the smaller.
func relayWindows(c *spec.Config, first, last bool) []window {
	const at = "transports.hop-by-hop-tcp"
	o := c.Transports.HopByHopTCP.RelayBuffer
	socket := 2 * (o / 8)
	var w []window
	if first {
		w = append(w, window{at, "the kernel makes the source's send buffer as large as " + decimal(float64(kernel.SendBufferMax), "B"), kernel.SendBufferMax, true})
	}
	switch {
	case !last:
		size := held(socket, segment)
		w = append(w, window{at + ".relay-buffer", fmt.Sprintf("of %v the socket before a relay has a window of %s", o, decimal(float64(size), "B")), size, false})
	case !first:
		w = append(w, window{at + ".relay-buffer", fmt.Sprintf("of %v the socket behind a relay holds %s", o, decimal(float64(socket), "B")), socket, false})
	}
	return w
}

// bundleWindows are the bounds of one hop of a bundle flow: its sockets are
// ordinary ones.
func bundleWindows() []window {
	const at = "transports.bundle"
	return []window{{at, "the kernel makes a send buffer as large as " + decimal(float64(kernel.SendBufferMax), "B"), kernel.SendBufferMax, true}}
}

// percent writes a share with two digits, less than 100.
func percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f", math.Floor(100*share))
	}
	return fmt.Sprintf("%.2g", 100*share)
}

// decimal writes a value with three digits and a decimal prefix.
func decimal(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T"}
	i := 0
	for ; v >= 999.5 && i+1 < len(prefixes); i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.3g %s%s", v, prefixes[i], unit)
}
