package backend

import (
	"github.com/hopbed/hopbed/agent/workload/voice"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// deadAir is how long nothing is heard of a call before it counts as one that failed.
const deadAir = vtime.Second

// judgeVoice says how a listener would judge a flow of speech, whose messages are
// given in the order in which they were sent: by the adaptive playout buffer,
// which has the warm-up to find the delay of the path. Only what was sent from the
// moment from on counts, and what was to be played by the end, when packets that
// are on their way are given up. A call of which nothing was to be played by then,
// though somebody has spoken for deadAir, is as bad as one of which all is lost: to
// leave it without a rating would leave the worst calls out of every mean.
func judgeVoice(row *store.Flow, codec string, messages []store.Message, from, end int64) {
	c, ok := voice.CodecOf(codec)
	if !ok {
		return
	}
	packets := make([]voice.Packet, len(messages))
	begin := len(messages)
	for i, m := range messages {
		packets[i] = voice.Packet{Sent: vtime.Time(m.ReadyUs) * vtime.Time(vtime.Microsecond), Delay: vtime.Duration(m.DelayUs.V) * vtime.Microsecond, Lost: !m.DelayUs.OK}
		if m.ReadyUs >= from {
			begin = min(begin, i)
		}
	}
	played := voice.Usual.Play(packets)
	due := len(played)
	for due > begin && packets[due-1].Sent.Add(played[due-1].Delay) > vtime.Time(end)*vtime.Time(vtime.Microsecond) {
		due--
	}
	if due == begin && begin < len(packets) && packets[begin].Sent.Add(deadAir) <= vtime.Time(end)*vtime.Time(vtime.Microsecond) {
		due = len(packets)
		for i := range played[begin:] {
			played[begin+i].Fate = voice.Lost
		}
	}
	s, ok := c.Rate(played[begin:due])
	if !ok {
		return
	}
	row.RFactor, row.MOS = store.Some(s.R), store.Some(s.MOS)
	row.Counters["voice_played"], row.Counters["voice_late"], row.Counters["voice_lost"] = int64(s.Played), int64(s.Late), int64(s.Lost)
	if s.Played > 0 {
		row.Counters["voice_mouth_to_ear_us"] = int64(s.MouthToEar / vtime.Microsecond)
	}
}
