package capture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Air is the name of the radio's interface in a capture: one antenna that hears
// every node.
const Air = "air"

// DefaultSnapLen is how much of a network-layer packet a capture keeps unless it
// is told otherwise: all headers, and the begin of the payload.
const DefaultSnapLen vtime.Bytes = 128

// Config says what there is to capture.
type Config struct {
	// Nodes are the names of the nodes, in the order of their indices.
	Nodes []string
	// MACs are the radios' configurations, one per node or one for all; none:
	// there is no radio.
	MACs []wifi.MAC
	// Links are the wired links.
	Links []Link
	// SnapLen is how many bytes of a network-layer packet are kept, from its IP
	// header on; 0 = all.
	SnapLen vtime.Bytes
	// At names the interfaces whose packets are wanted, such as "air" and
	// "ap:eth0"; none: all. The event log has everything.
	At []string
	// Packets gives the bytes of packets.
	Packets Packets
	// Comment describes the run, in the file's header.
	Comment string
}

// Link is a wired link.
type Link struct {
	Ends       [2]int           // nodes
	Interfaces [2]string        // of either end
	Rate       [2]vtime.BitRate // from either end to the other; 0 = unlimited, or changing
}

// SteadyRate is the rate of one direction of a link, as in Link.Rate: 0 where it
// is unlimited or a schedule changes it.
func SteadyRate(c *pipe.Config) vtime.BitRate {
	for i := range c.Schedule {
		if c.Schedule[i].Rate != nil {
			return 0
		}
	}
	return c.Rate
}

// Packet is a packet on a link: of a frame on the air, or in a pipe.
type Packet struct {
	Src, Dst int // the ends of the link, not of the path; Dst may be wifi.Broadcast
	Len      vtime.Bytes
	Data     []byte
	Payload  any
}

// Packets gives the bytes of packets.
type Packets interface {
	// Append appends the network-layer packet to dst, all of it or at least its
	// first limit bytes, and returns its EtherType (0: unknown, nothing was
	// appended). It is called on the path of every frame and should not allocate.
	Append(dst []byte, p Packet, limit int) (out []byte, etherType uint16)
}

// Ethernet takes the packets of Ethernet frames, which are in Packet.Data in live
// runs.
type Ethernet struct{}

// Append implements Packets.
func (Ethernet) Append(dst []byte, p Packet, limit int) ([]byte, uint16) {
	const header = 14
	if len(p.Data) < header {
		return dst, 0
	}
	n := min(limit, int(p.Len), len(p.Data)-header)
	return append(dst, p.Data[header:header+n]...), uint16(p.Data[12])<<8 | uint16(p.Data[13])
}

// iface is one interface of a capture.
type iface struct {
	name, description string
	link              uint16
	snap              int
	speed             vtime.BitRate
	wanted            bool
	number            int // in the file
	seen, dropped     uint64
}

// Sniffer makes records of what it sees. Give it to the medium (SetMonitor) and
// its Pipe monitors to the pipes; all on one thread.
type Sniffer struct {
	cfg     Config
	packets *Stream // nil: not wanted
	events  *Stream // nil: not wanted

	radios []radio
	ifs    []iface // air first where there is a radio, then both ends of each link
	first  int     // index of the first wired interface

	begun      bool
	epoch, end vtime.Time // engine time
	log        log
}

var _ wifi.Recorder = (*Sniffer)(nil)

// NewSniffer returns a sniffer for one run. Of the streams either may be nil.
// The error says which interface of At there is not.
func NewSniffer(cfg Config, packets, events *Stream) (*Sniffer, error) {
	s := &Sniffer{cfg: cfg, packets: packets, events: events}
	for i := range cfg.MACs {
		s.radios = append(s.radios, newRadio(&cfg.MACs[i]))
	}
	limit := int(cfg.SnapLen)
	if cfg.SnapLen <= 0 || cfg.SnapLen > wifi.MaxLen { // all: no link carries more
		s.cfg.SnapLen, limit = wifi.MaxLen, 0
	}
	if len(cfg.MACs) > 0 {
		s.first = 1
		air := iface{name: Air, description: "one antenna that hears every node", link: linkRadiotap}
		if limit > 0 {
			air.snap = limit + radiotapLen + maxMACHeader
		}
		s.ifs = append(s.ifs, air)
	}
	for i := range cfg.Links {
		for end := range 2 {
			s.ifs = append(s.ifs, iface{name: cfg.Place(i, end), description: "wired link to " + cfg.Place(i, 1-end),
				link: linkRaw, snap: limit, speed: cfg.Links[i].Rate[end]})
		}
	}
	if err := s.choose(cfg.At); err != nil {
		return nil, err
	}
	s.log.init(&s.cfg)
	return s, nil
}

// maxMACHeader is the longest header before the packet: QoS data and LLC/SNAP.
const maxMACHeader = 26 + 8

// Place names the interface at an end of a link, such as "ap:eth0".
func (c *Config) Place(link, end int) string {
	l := &c.Links[link]
	return c.Nodes[l.Ends[end]] + ":" + l.Interfaces[end]
}

// Interfaces names what can be captured, in the order of the file.
func (c *Config) Interfaces() []string {
	var names []string
	if len(c.MACs) > 0 {
		names = append(names, Air)
	}
	for i := range c.Links {
		names = append(names, c.Place(i, 0), c.Place(i, 1))
	}
	return names
}

func (s *Sniffer) choose(at []string) error {
	names := s.cfg.Interfaces()
	for _, want := range at {
		if !slices.Contains(names, want) {
			return fmt.Errorf("capture: there is no interface %q, only %s", want, strings.Join(names, ", "))
		}
	}
	n := 0
	for i := range s.ifs {
		f := &s.ifs[i]
		if f.wanted = len(at) == 0 || slices.Contains(at, f.name); f.wanted {
			f.number = n
			n++
		}
	}
	return nil
}

// Begin starts the capture: epoch is the engine's time of the run's time 0. What
// ended before it is not recorded. comment, if not empty, stands in the file's
// header beside that of the configuration.
func (s *Sniffer) Begin(epoch vtime.Time, comment string) {
	s.begun, s.epoch, s.end = true, epoch, epoch
	if s.packets != nil {
		s.header(strings.TrimPrefix(s.cfg.Comment+"\n"+comment, "\n"))
	}
	if s.events != nil {
		s.events.done(s.log.head(s.events.room(), comment))
	}
}

// header writes section, interfaces and names. Each block has its own room: many
// nodes have many names.
func (s *Sniffer) header(comment string) {
	put := func(b []byte) { s.packets.done(b) }
	put(appendSection(s.packets.room(), "hopbed", strings.TrimSuffix(comment, "\n")))
	for i := range s.ifs {
		if s.ifs[i].wanted {
			put(appendInterface(s.packets.room(), &s.ifs[i]))
		}
	}
	const batch = 16 // names fit a record's room
	for i := 0; i < len(s.cfg.Nodes); i += batch {
		b, at := beginBlock(s.packets.room(), blockNames)
		for k := i; k < min(i+batch, len(s.cfg.Nodes)); k++ {
			name := s.cfg.Nodes[k]
			b = appendName(b, tap.Addr(k).As4(), name[:min(len(name), 64)])
		}
		b = appendOption(b, optEnd, 0)
		put(endBlock(b, at))
	}
}

// End ends the capture at the engine's time now and closes the streams.
func (s *Sniffer) End(now vtime.Time) {
	if s.packets != nil {
		if s.begun {
			for i := range s.ifs {
				if f := &s.ifs[i]; f.wanted {
					if b := s.packets.room(); b != nil {
						s.packets.done(appendStatistics(b, f.number, f, 0, s.at(now)))
					}
				}
			}
		}
		s.packets.Close()
	}
	if s.events != nil {
		s.events.Close()
	}
	s.begun = false
}

// Flush hands on what was recorded.
func (s *Sniffer) Flush() {
	if s.packets != nil {
		s.packets.Flush()
	}
	if s.events != nil {
		s.events.Flush()
	}
}

// at converts the engine's time to the run's clock.
func (s *Sniffer) at(now vtime.Time) vtime.Time { return now - s.epoch }

// records says whether something that happens now belongs to the capture.
func (s *Sniffer) records(now vtime.Time) bool { return s.begun && now >= s.epoch }

// Stats says what a capture holds.
type Stats struct {
	Interfaces []InterfaceStats `json:"interfaces"`
	Events     uint64           `json:"events"`         // lines in the log
	Unlogged   uint64           `json:"events_dropped"` // lines that found no room
}

// InterfaceStats are those of one interface of a capture.
type InterfaceStats struct {
	Name    string `json:"name"`
	Frames  uint64 `json:"frames"`
	Dropped uint64 `json:"dropped"` // of them, not recorded: they found no room
}

// Dropped is the number of frames and lines that found no room.
func (s *Stats) Dropped() uint64 {
	n := s.Unlogged
	for _, i := range s.Interfaces {
		n += i.Dropped
	}
	return n
}

// Stats returns what was recorded.
func (s *Sniffer) Stats() Stats {
	out := Stats{Events: s.log.lines, Unlogged: s.log.dropped}
	for i := range s.ifs {
		if f := &s.ifs[i]; f.wanted && s.packets != nil {
			out.Interfaces = append(out.Interfaces, InterfaceStats{f.name, f.seen, f.dropped})
		}
	}
	return out
}

// Pipe returns the monitor of the pipe that leads from the given end of a link
// to the other.
func (s *Sniffer) Pipe(link, end int) pipe.Monitor { return &wire{s, link, end} }
