package sim

import (
	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simnet"
)

// recording is a run's capture. It writes as the run goes on: virtual time
// waits.
type recording struct {
	sniffer         *capture.Sniffer
	packets, events *capture.Stream
}

// packets gives the bytes of the model's packets.
type packets struct{ of *simnet.Bytes }

// Append implements capture.Packets.
func (p packets) Append(dst []byte, k capture.Packet, limit int) ([]byte, uint16) {
	const ipv4 = 0x0800
	return p.of.Append(dst, k.Payload, limit), ipv4
}

// record begins a capture of everything in the world.
func (w *world) record(c *backend.Capture) error {
	cfg := c.Config(w.s)
	cfg.Packets = packets{w.net.Bytes(func(node int) [4]byte { return tap.Addr(node).As4() })}
	r := &recording{}
	if c.Packets != nil {
		r.packets = capture.NewStream(c.Packets)
	}
	if c.Events != nil {
		r.events = capture.NewStream(c.Events)
	}
	var err error
	if r.sniffer, err = capture.NewSniffer(cfg, r.packets, r.events); err != nil {
		return err
	}
	if w.med != nil {
		w.med.SetMonitor(r.sniffer)
	}
	for i := range w.s.Topology.Pipes {
		for e := range 2 {
			w.net.Pipe(i, e).SetMonitor(r.sniffer.Pipe(i, e))
		}
	}
	r.sniffer.Begin(0, "")
	w.recording = r
	return nil
}

// end completes the files and says what became of them.
func (r *recording) end(w *world, c *backend.Capture) {
	r.sniffer.End(w.end)
	c.Stats = r.sniffer.Stats()
	if r.packets != nil {
		c.PacketsErr = r.packets.Err()
	}
	if r.events != nil {
		c.EventsErr = r.events.Err()
	}
}
