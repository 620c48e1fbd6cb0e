package wifi

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// At the end of each frame all stations that wait for access set their timers, and
// all but the one that wins stop them again. So access timers are not events of the
// engine, but a list, of which the engine has the first one. Each takes its number
// among the engine's events when it is set, and therefore fires as if it were one.

// contenders are the access timers that run.
type contenders struct {
	list  []contender
	most  int         // maxContenders
	event des.EventID // of the first of them
	first uint64      // its number; 0: the engine has none
	at    vtime.Time  // its time
	stale bool        // another one may be the first now
}

type contender struct {
	at      vtime.Time
	number  uint64
	station int32
}

// maxContenders bounds the list, which is searched for its first; in a network with
// more of them the others are events.
const maxContenders = 64

// contend sets a station's access timer, if there is room.
func (m *Medium) contend(s *station, at vtime.Time) bool {
	c := &m.contenders
	if len(c.list) == c.most {
		return false
	}
	s.contender = int32(len(c.list))
	c.list = append(c.list, contender{at: at, number: m.eng.Reserve(), station: s.id})
	if c.first == 0 || at < c.at {
		c.stale = true
	}
	return true
}

// withdraw stops a contender's timer.
func (m *Medium) withdraw(s *station) {
	c := &m.contenders
	if c.list[s.contender].number == c.first {
		c.stale = true
	}
	last := len(c.list) - 1
	if moved := c.list[last]; int(s.contender) != last {
		c.list[s.contender] = moved
		m.stations[moved.station].contender = s.contender
	}
	c.list = c.list[:last]
	s.contender = -1
}

// settle gives the engine the first contender. It runs before the medium returns to
// whoever called it.
func (m *Medium) settle() {
	c := &m.contenders
	if !c.stale {
		return
	}
	c.stale = false
	var first *contender
	for i := range c.list {
		if k := &c.list[i]; first == nil || k.at < first.at || k.at == first.at && k.number < first.number {
			first = k
		}
	}
	switch {
	case first != nil && first.number == c.first:
		return
	case c.first != 0:
		m.eng.Cancel(c.event)
		c.first = 0
	}
	if first != nil {
		c.first, c.at = first.number, first.at
		c.event = m.eng.ScheduleReserved(first.at, first.number, m, uint64(first.station)<<8|uint64(timerAccess))
	}
}
