package tap

import (
	"bytes"
	"fmt"
	"strconv"
)

// Counters are the kernel's counts of an interface, from the namespace's point
// of view: "sent" went to the emulator, "received" came from it.
type Counters struct {
	Received        uint64 `json:"received"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	ReceiveErrors   uint64 `json:"receive_errors"`
	ReceiveDropped  uint64 `json:"receive_dropped"`
	Sent            uint64 `json:"sent"`
	SentBytes       uint64 `json:"sent_bytes"`
	TransmitErrors  uint64 `json:"transmit_errors"`
	TransmitDropped uint64 `json:"transmit_dropped"` // ring full: the emulator was late
}

// Sub returns the counts since o.
func (c Counters) Sub(o Counters) Counters {
	return Counters{
		c.Received - o.Received, c.ReceivedBytes - o.ReceivedBytes, c.ReceiveErrors - o.ReceiveErrors, c.ReceiveDropped - o.ReceiveDropped,
		c.Sent - o.Sent, c.SentBytes - o.SentBytes, c.TransmitErrors - o.TransmitErrors, c.TransmitDropped - o.TransmitDropped,
	}
}

// Add returns the sum of c and o.
func (c Counters) Add(o Counters) Counters {
	return Counters{
		c.Received + o.Received, c.ReceivedBytes + o.ReceivedBytes, c.ReceiveErrors + o.ReceiveErrors, c.ReceiveDropped + o.ReceiveDropped,
		c.Sent + o.Sent, c.SentBytes + o.SentBytes, c.TransmitErrors + o.TransmitErrors, c.TransmitDropped + o.TransmitDropped,
	}
}

// parseCounters reads one interface's line of /proc/net/dev: 16 columns, eight
// for each direction (proc_pid_net(5)).
func parseCounters(file []byte, name string) (Counters, error) {
	for line := range bytes.Lines(file) {
		ifname, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok || string(bytes.TrimSpace(ifname)) != name {
			continue
		}
		var v [16]uint64
		fields := bytes.Fields(rest)
		if len(fields) < len(v) {
			return Counters{}, fmt.Errorf("interface %s has %d columns, want %d", name, len(fields), len(v))
		}
		for i := range v {
			n, err := strconv.ParseUint(string(fields[i]), 10, 64)
			if err != nil {
				return Counters{}, fmt.Errorf("interface %s, column %d: %w", name, i+1, err)
			}
			v[i] = n
		}
		return Counters{
			ReceivedBytes: v[0], Received: v[1], ReceiveErrors: v[2], ReceiveDropped: v[3],
			SentBytes: v[8], Sent: v[9], TransmitErrors: v[10], TransmitDropped: v[11],
		}, nil
	}
	return Counters{}, fmt.Errorf("no interface %s", name)
}
