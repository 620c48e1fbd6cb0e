package workload

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Codec is a voice codec as it is sent over RTP.
type Codec struct {
	Name     string
	Payload  vtime.Bytes    // of a packet
	Interval vtime.Duration // between packets
}

// RTPHeader is the size of the RTP header that each packet of voice carries
// beside its payload (RFC 3550 §5.1).
const RTPHeader vtime.Bytes = 12

// codecs, in the order in which messages name them. Packets of 20 ms are RTP's
// default for both (RFC 3551 §4.2, table 1).
var codecs = []Codec{
	// 8 kb/s: two frames of 10 B and 10 ms (ITU-T G.729; RFC 3551 §4.5.6).
	{"g729", 20, 20 * vtime.Millisecond},
	// 64 kb/s: 8,000 samples of 1 B a second (ITU-T G.711; RFC 3551 §4.5.14).
	{"g711", 160, 20 * vtime.Millisecond},
}

// Codecs returns the codecs that a voip source knows.
func Codecs() []Codec { return append([]Codec(nil), codecs...) }

// CodecOf finds a codec by its name.
func CodecOf(name string) (Codec, bool) {
	for _, c := range codecs {
		if c.Name == name {
			return c, true
		}
	}
	return Codec{}, false
}

// Packet is the size of a packet: RTP header and payload.
func (c Codec) Packet() vtime.Bytes { return RTPHeader + c.Payload }

// voip sends a packet at each interval of the codec, without silence suppression.
// The first one comes at a random moment of the first interval: calls that begin
// together would stay in phase otherwise.
type voip struct {
	at, stop vtime.Time
	interval vtime.Duration
	size     vtime.Bytes
}

func newVoIP(spec Spec, start, stop vtime.Time) *voip {
	c, _ := CodecOf(spec.Codec) // the spec is valid
	phase := des.NewStream(spec.Seed, "workload/voip/phase").IntN(int(c.Interval))
	return &voip{at: start.Add(vtime.Duration(phase)), stop: stop, interval: c.Interval, size: c.Packet()}
}

func (v *voip) next() (message, bool) {
	m := message{v.at, v.size}
	if m.ready >= v.stop {
		return message{}, false
	}
	v.at = v.at.Add(v.interval)
	return m, true
}
