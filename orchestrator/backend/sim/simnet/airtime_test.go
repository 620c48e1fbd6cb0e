package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// What frames of 802.11b cost in the air, in µs (802.11-2012 clause 17): 11 Mb/s
// with the long preamble, acknowledgements at 2 Mb/s.
const (
	slotUs     = 20.0
	sifsUs     = 10.0
	preambleUs = 192.0
	ackUs      = preambleUs + 14*8/2.0
	// llcMAC are the bytes around an IP packet: LLC and SNAP 8, QoS header 26, FCS 4.
	llcMAC = 8 + 26 + 4
)

// frameUs is the time of a frame with an IP packet of so many bytes.
func frameUs(packet float64) float64 { return preambleUs + (packet+llcMAC)*8/11 }

// accessUs is the mean time until a lone sender's frame begins: AIFS and half of
// the smallest contention window (802.11-2012 9.19.2.3, 9.19.2.5).
func accessUs(q wifi.Queue) float64 {
	return sifsUs + float64(q.AIFSN)*slotUs + float64(q.CWmin)/2*slotUs
}

// hopBound is the goodput in Mb/s of one Hop flow alone on a clean hop, if nothing
// but its own frames took time: for each block the announcement and its grant, the
// data in bursts as long as the txop allows, the question for the bitmap and the
// bitmap, and the end-to-end acknowledgement.
func hopBound(m wifi.MAC, block, payload float64) float64 {
	const ip = 28 // IP and UDP
	control := func(bytes float64) float64 {
		return accessUs(m.Queues[wifi.VO]) + frameUs(ip+hop.HeaderLen+bytes) + sifsUs + ackUs
	}
	packets := int(block / payload)
	rest := block - float64(packets)*payload
	data := func(bytes float64) float64 { return frameUs(ip + hop.HeaderLen + bytes) }
	bitmap := float64((packets + 8) / 8)
	const announcement, e2e = 20, 12
	us := 2*(control(announcement)+control(bitmap)) + control(e2e)
	// Bursts: as many frames as fit the limit, SIFS apart.
	limit := float64(m.Queues[wifi.BK].TXOP) / 1e3
	burst := 0.0
	for i := 0; i <= packets; i++ {
		frame := data(payload)
		if i == packets {
			if rest == 0 {
				break
			}
			frame = data(rest)
		}
		if burst == 0 || burst+sifsUs+frame > limit {
			us += accessUs(m.Queues[wifi.BK]) + burst
			burst = frame
		} else {
			burst += sifsUs + frame
		}
	}
	return 8 * block / (us + burst)
}

// TestHopReachesItsAirtimeBound: on a clean hop of 802.11b next to nothing is lost
// to waiting.
func TestHopReachesItsAirtimeBound(t *testing.T) {
	mac := testMAC()
	for _, c := range []struct {
		block vtime.Bytes
		least float64
	}{{1 * vtime.MiB, 0.95}, {256 * vtime.KiB, 0.95}, {64 * vtime.KiB, 0.95}, {32 * vtime.KiB, 0.95}} {
		f := proto.Flow{Transport: "hop", Src: 0, Dst: 1, Options: proto.FlowOptions{BlockSize: c.block}}
		l := newLab(t, positions(0, 100), mac, func(c *Config) { c.End = 61 * sec }, f)
		l.finish()
		bound := hopBound(mac, float64(c.block), float64(l.cfg.Hop.Payload))
		share := l.goodput(0) / bound
		t.Logf("blocks of %v: %.3f of at most %.3f Mb/s: %.1f %%", c.block, l.goodput(0), bound, 100*share)
		if share < c.least || share > 1.01 {
			t.Errorf("blocks of %v: %.3f Mb/s are %.3f of the bound, want %.2f at least", c.block, l.goodput(0), share, c.least)
		}
	}
}

// TestWhatAcknowledgementsCost: on a clean hop, datagrams without link-layer ARQ in
// bursts bring 1.2 to 1.6 times what they do with ARQ one by one (the paper's 35 %).
func TestWhatAcknowledgementsCost(t *testing.T) {
	run := func(q wifi.Queue) float64 {
		m := wifi.DefaultMAC(wifi.StandardB)
		m.Queues[wifi.BE] = q
		l := newLab(t, positions(0, 100), m, nil, udp(0, 1, 1400))
		l.finish()
		return l.goodput(0)
	}
	q := wifi.DefaultMAC(wifi.StandardB).Queues[wifi.BE]
	with := run(q)
	q.Ack, q.TXOP = wifi.AckNone, hop.DataTxop
	without := run(q)
	t.Logf("%.3f and %.3f Mb/s: %.3f", without, with, without/with)
	if r := without / with; r < 1.2 || r > 1.6 {
		t.Errorf("without ARQ in bursts %.3f Mb/s, with ARQ %.3f: %.3f, want 1.2 to 1.6", without, with, r)
	}
	near(t, "with ARQ", with, saturated(3, 1, true, 1400), 0.005)
	near(t, "without ARQ in bursts", without, saturated(3, 6, false, 1400), 0.005)
}
