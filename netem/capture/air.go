package capture

import (
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Air implements wifi.Monitor; a frame is recorded when it ends.
func (s *Sniffer) Air(*wifi.Transmission) {}

// lostComments introduce the name of the node that did not get a frame.
var lostComments = [...]string{wifi.FateNoise: "lost to noise at ", wifi.FateCollision: "lost to a collision at ", wifi.FateCut: "cut off by "}

// Landed implements wifi.Recorder: it records the frame with the time of its
// end, when a sniffer has it, and TSFT of its begin.
func (s *Sniffer) Landed(now vtime.Time, t *wifi.Transmission) {
	if !s.records(now) || s.first == 0 {
		return
	}
	if s.events != nil {
		s.line(s.log.frame(s.events.room(), s.at(now), s.radio(t.Src), t))
	}
	f := &s.ifs[0]
	if s.packets == nil || !f.wanted {
		return
	}
	f.seen++
	b := s.packets.room()
	if b == nil {
		f.dropped++
		return
	}
	r := s.radio(t.Src)
	b, block := beginPacket(b, f.number, s.at(now))
	b = r.appendRadiotap(b, t.Start-s.epoch, t.Rate, true)
	mpdu := len(b)
	b = r.appendHeader(b, t)
	if t.Kind == wifi.KindData {
		b = s.appendMSDU(b, t)
	}
	length := r.length(t)
	if len(b)-mpdu == length-fcsLen { // the whole frame
		b = appendFCS(b, mpdu)
	}
	comment, place := "", ""
	switch t.Fate {
	case wifi.FateNoise, wifi.FateCollision:
		comment, place = lostComments[t.Fate], s.cfg.Nodes[t.Dst]
	case wifi.FateCut:
		comment, place = lostComments[t.Fate], s.cfg.Nodes[t.Src]
	}
	s.packets.done(endPacket(b, block, radiotapLen+length, directionUnknown, comment, place))
}

// appendMSDU appends EtherType and packet, no more of it than is wanted.
func (s *Sniffer) appendMSDU(b []byte, t *wifi.Transmission) []byte {
	f := t.Frame
	limit := int(min(s.cfg.SnapLen, f.Len))
	at := len(b)
	b = append(b, 0, 0)
	b, kind := s.append(b, Packet{Src: t.Src, Dst: t.Dst, Len: f.Len, Data: f.Data, Payload: f.Payload}, limit)
	b[at], b[at+1] = byte(kind>>8), byte(kind)
	return b
}

// append appends the first limit bytes of a packet, or all there are.
func (s *Sniffer) append(b []byte, p Packet, limit int) ([]byte, uint16) {
	if s.cfg.Packets == nil {
		return b, 0
	}
	at := len(b)
	b, kind := s.cfg.Packets.Append(b, p, limit)
	return b[:min(len(b), at+limit)], kind
}

// Dropped implements wifi.Recorder.
func (s *Sniffer) Dropped(now vtime.Time, f *wifi.Frame, o wifi.Outcome) {
	if s.records(now) && s.events != nil {
		s.line(s.log.drop(s.events.room(), s.at(now), f, o))
	}
}

// radio is that of a node.
func (s *Sniffer) radio(node int) radio {
	if len(s.radios) == 1 {
		return s.radios[0]
	}
	return s.radios[node]
}
