package emulator

import "github.com/hopbed/hopbed/netem/vtime"

// fullPacket is an IP packet of the devices' MTU.
const fullPacket = 1500 * vtime.Byte

// shortestDrain is the least time in which the full queue of a wired link of the
// configuration empties: what a sender's window brings during a longer standstill
// is more than the queue holds when it comes in one burst. Zero: no link has both a
// rate and a limit.
func shortestDrain(c *Config) vtime.Duration {
	least := vtime.Duration(0)
	for i := range c.Pipes {
		if c.Pipes[i].Kernel {
			continue // it does not stand still with the emulator
		}
		for _, d := range c.Pipes[i].Config {
			if d.Rate <= 0 {
				continue // unlimited, or a trace's: it has no one drain time
			}
			holds := vtime.Bytes(d.Queue.Packets) * fullPacket
			if b := d.Queue.Bytes; b > 0 && (holds == 0 || b < holds) {
				holds = b
			}
			if t := d.Rate.TxTime(holds); t > 0 && (least == 0 || t < least) {
				least = t
			}
		}
	}
	return least
}
