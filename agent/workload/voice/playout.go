package voice

import (
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Packet is what became of one packet of a stream.
type Packet struct {
	Sent  vtime.Time
	Delay vtime.Duration // until it had arrived; meaningless for a lost one
	Lost  bool
}

func (p *Packet) arrival() vtime.Time { return p.Sent.Add(p.Delay) }

// Fate says what a listener gets of a packet.
type Fate uint8

// The fates of packets.
const (
	Played Fate = iota
	Late        // it arrived after its moment had passed
	Lost        // it never arrived
)

// Playout is the decision of a playout buffer about one packet.
type Playout struct {
	Fate  Fate
	Delay vtime.Duration // from when the packet was sent until its moment to be played
}

// fate decides about a packet whose moment comes so long after it was sent.
func (p *Packet) fate(after vtime.Duration) Playout {
	switch {
	case p.Lost:
		return Playout{Lost, after}
	case p.Delay > after:
		return Playout{Late, after}
	}
	return Playout{Played, after}
}

// first returns the delay of the packet that arrived first; ok is false where none
// did.
func first(packets []Packet) (d vtime.Duration, ok bool) {
	var at vtime.Time
	for i := range packets {
		p := &packets[i]
		if !p.Lost && (!ok || p.arrival() < at) {
			d, at, ok = p.Delay, p.arrival(), true
		}
	}
	return d, ok
}

// Fixed is a buffer that holds the first packet that arrives for a time, and plays
// everything else in step with it. The packets are in the order in which they were
// sent.
func Fixed(packets []Packet, hold vtime.Duration) []Playout {
	d, _ := first(packets)
	out := make([]Playout, len(packets))
	for i := range packets {
		out[i] = packets[i].fate(d + hold)
	}
	return out
}

// Adaptive is a buffer that follows the delays of the recent past: the playout
// delay is a quantile of those of the last packets (after Moon, Kurose and
// Towsley, Packet audio playout delay adjustment, Multimedia Systems 6, 1998). It
// changes once a second, by stretching and shortening speech, which is taken to be
// inaudible; theirs changes between talkspurts, of which a stream without silence
// suppression has none.
type Adaptive struct {
	Start    vtime.Duration // for which the first packet is held
	Every    int            // packets between two changes
	Window   int            // packets whose delays count
	Quantile float64        // of the delays that is to be played
	// Least and Most bound the time for which the fastest packet of the window is
	// held: what a player keeps in hand, and the memory of the buffer.
	Least, Most vtime.Duration
}

// Usual is the buffer by which flows are judged: 60 ms at first, then the 99 %
// quantile of five seconds, at least a packet's 20 ms and at most 500 ms above the
// least delay.
var Usual = Adaptive{Start: 60 * vtime.Millisecond, Every: 50, Window: 250, Quantile: 0.99, Least: 20 * vtime.Millisecond, Most: 500 * vtime.Millisecond}

// Play decides about packets in the order in which they were sent. A change
// knows the packets that have arrived by then, and no others.
func (a Adaptive) Play(packets []Packet) []Playout {
	d, _ := first(packets)
	after := d + a.Start
	out := make([]Playout, len(packets))
	var delays []vtime.Duration
	for i := range packets {
		if i > 0 && i%a.Every == 0 {
			now := packets[i].Sent.Add(after)
			delays = delays[:0]
			for _, p := range packets[max(0, i-a.Window):i] {
				if !p.Lost && p.arrival() <= now {
					delays = append(delays, p.Delay)
				}
			}
			if len(delays) > 0 {
				slices.Sort(delays)
				k := min(len(delays)-1, int(float64(a.Quantile*float64(len(delays)))))
				after = min(max(delays[k], delays[0]+a.Least), delays[0]+a.Most)
			}
		}
		out[i] = packets[i].fate(after)
	}
	return out
}

// Score is the judgement of a stream.
type Score struct {
	R, MOS             float64
	MouthToEar         vtime.Duration // mean of the packets that were played, the codec's delay included
	Played, Late, Lost int
	BurstR             float64 // 1 or more; 1: losses as if independent
}

// Rate judges a stream by what its buffer decided. A stream of which nothing was
// played has the worst rating; one without packets has none.
func (c Codec) Rate(playouts []Playout) (s Score, ok bool) {
	if len(playouts) == 0 {
		return Score{}, false
	}
	var sum, bursts int64 // delays in µs; runs of packets that were not played
	missing := false
	for _, p := range playouts {
		switch p.Fate {
		case Played:
			s.Played++
			sum += int64(p.Delay) / int64(vtime.Microsecond)
		case Late:
			s.Late++
		case Lost:
			s.Lost++
		}
		if gone := p.Fate != Played; gone != missing {
			if missing = gone; gone {
				bursts++
			}
		}
	}
	s.BurstR = 1
	if s.Played == 0 {
		s.MOS = MOS(0)
		return s, true
	}
	gone := s.Late + s.Lost
	loss := float64(gone) / float64(len(playouts))
	if bursts > 0 {
		// The mean run over that of independent losses, 1/(1−loss).
		s.BurstR = max(1, float64(float64(gone)/float64(bursts)*(1-loss)))
	}
	s.MouthToEar = c.Delay + vtime.Duration(sum/int64(s.Played))*vtime.Microsecond
	s.R = c.Rating(s.MouthToEar, loss, s.BurstR)
	s.MOS = MOS(s.R)
	return s, true
}
