package capture

import (
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// wire is the monitor of one direction of a link.
type wire struct {
	s    *Sniffer
	link int
	end  int // from here to the other
}

// stepComments say why a packet that was sent will not arrive.
var stepComments = [...]string{pipe.LostAtEntry: "lost in the pipe", pipe.QueueFull: "dropped by the pipe: its queue is full", pipe.Arrived: ""}

// Passed implements pipe.Monitor. A capture shows what tcpdump would on the
// nodes' interfaces: a packet at its sender's when it is handed to the link, and
// at its receiver's when it arrives.
func (w *wire) Passed(now vtime.Time, p *pipe.Packet, step pipe.Step) {
	s := w.s
	if !s.records(now) {
		return
	}
	if s.events != nil {
		s.line(s.log.step(s.events.room(), s.at(now), w, p, step))
	}
	end, direction, comment := w.end, uint32(outbound), ""
	switch step {
	case pipe.LostOnWire, pipe.NodeOff:
		return // it was recorded when it entered
	case pipe.Arrived:
		end, direction = 1-w.end, inbound
		if p.Duplicate {
			comment = "second copy"
		}
	default:
		comment = stepComments[step]
	}
	f := &s.ifs[s.first+2*w.link+end]
	if s.packets == nil || !f.wanted {
		return
	}
	b := s.packets.room()
	if b == nil {
		f.seen++
		f.dropped++
		return
	}
	b, block := beginPacket(b, f.number, s.at(now))
	ends := &s.cfg.Links[w.link].Ends
	b, kind := s.append(b, Packet{Src: ends[w.end], Dst: ends[1-w.end], Len: p.Len, Data: p.Data, Payload: p.Payload}, int(min(s.cfg.SnapLen, p.Len)))
	if kind == typeARP {
		return // a link type of IP packets has no place for it
	}
	f.seen++
	s.packets.done(endPacket(b, block, int(p.Len), direction, comment, ""))
}
