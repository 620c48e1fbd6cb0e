package capture

import (
	"bytes"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The file is whole: interfaces, names, counts, times in order.
func TestFileHoldsWhatHappened(t *testing.T) {
	l := newLab(t, nil)
	b, _, s := l.record(200)
	f := readFile(t, b)
	var names []string
	for _, i := range f.interfaces {
		names = append(names, i.name)
		if !i.nanoseconds || !i.hasStatistics || i.dropped != 0 || i.until != l.eng.Now() {
			t.Errorf("interface %+v", i)
		}
	}
	if !slices.Equal(names, []string{"air", "ap:eth0", "server:eth0"}) || !slices.Equal(names, l.cfg.Interfaces()) {
		t.Errorf("interfaces %v", names)
	}
	if f.comment != "a test" || f.names["[10 77 0 4]"] != "server" || len(f.names) != 4 {
		t.Errorf("comment %q, names %v", f.comment, f.names)
	}
	seen := map[int]uint64{}
	last := vtime.Time(0)
	for _, p := range f.packets {
		seen[p.iface]++
		if p.at < last {
			t.Fatalf("a packet at %v follows one at %v", p.at, last)
		}
		last = p.at
	}
	var air uint64
	for i := range 3 {
		for _, ac := range l.med.Stats(i).AC {
			air += ac.Attempts
		}
	}
	if seen[0] < air+100 { // and their ACKs
		t.Errorf("%d frames on the air, %d of data", seen[0], air)
	}
	for i, f := range f.interfaces {
		if f.seen != seen[i] || s.Stats().Interfaces[i] != (InterfaceStats{f.name, seen[i], 0}) {
			t.Errorf("%s: %d packets, statistics say %d and %+v", f.name, seen[i], f.seen, s.Stats().Interfaces[i])
		}
	}
	for e, p := range l.pipes {
		st := p.Stats()
		in, out := uint64(0), uint64(0)
		for _, p := range f.packets {
			switch {
			case p.iface == 1+e && p.direction == outbound:
				out++
			case p.iface == 2-e && p.direction == inbound:
				in++
			}
		}
		if out != st.Entered || in != st.Delivered || st.LostPackets == 0 || st.Overflows == 0 {
			t.Errorf("direction %d: %d sent and %d received are shown; counters %+v", e, out, in, st)
		}
	}
}

// Every frame is as long as its time on the air says, and a whole one ends with
// its FCS.
func TestFramesHaveTheirLength(t *testing.T) {
	for _, snap := range []vtime.Bytes{0, 1, 20, 128} {
		l := newLab(t, nil)
		l.cfg.SnapLen = snap
		b, _, _ := l.record(50)
		whole := 0
		for i, p := range readFile(t, b).packets {
			if p.iface != 0 {
				if want := min(p.original, max(int(snap), (1-min(int(snap), 1))*3000)); len(p.data) != want {
					t.Fatalf("packet %d: %d of %d bytes at a snap length of %d", i, len(p.data), p.original, snap)
				}
				continue
			}
			mpdu := p.data[22:]
			if int(p.data[2]) != 22 || le.Uint32(p.data[4:]) != 0xf {
				t.Fatalf("radiotap % x", p.data[:22])
			}
			rate := vtime.BitRate(p.data[17]) * 500 * vtime.KbitPerSecond
			// 802.11-2012 17.3.4 with the long preamble, whose end TSFT is.
			payload := (rate.TxTime(vtime.Bytes(p.original-22)) + 999) / 1000 * 1000
			if end := vtime.Time(le.Uint64(p.data[8:]) * 1000).Add(payload); p.at.Sub(end) < 0 || p.at.Sub(end) >= 1000 {
				t.Fatalf("frame %d: ends at %v, but %v after its MPDU's begin is %v", i, p.at, payload, end)
			}
			if len(p.data) == p.original {
				whole++
				body := mpdu[:len(mpdu)-4]
				if got := le.Uint32(mpdu[len(body):]); got != crc32.ChecksumIEEE(body) {
					t.Fatalf("frame %d: FCS %08x", i, got)
				}
			} else if want := 22 + 26 + 8 + int(snap); len(p.data) != want {
				t.Fatalf("frame %d: %d bytes, want %d", i, len(p.data), want)
			}
		}
		if whole == 0 {
			t.Errorf("snap length %d: not even a control frame is whole", snap)
		}
	}
}

// The headers say what the medium's transmissions say.
func TestHeadersSayWhatHappened(t *testing.T) {
	l := newLab(t, func(m *wifi.MAC) { m.RTSThreshold = 1000 })
	b, _, _ := l.record(100)
	kinds := map[byte]int{}
	retries, lost := 0, 0
	for _, p := range readFile(t, b).packets {
		if p.iface != 0 {
			continue
		}
		h := p.data[22:]
		kinds[h[0]]++
		if strings.HasPrefix(p.comment, "lost to a collision at ") {
			lost++
		}
		if h[0] != 0x88 {
			if h[1] != 0 {
				t.Fatalf("flags %02x of a control frame", h[1])
			}
			continue
		}
		if h[1]&^0x08 != 0 {
			t.Fatalf("flags %02x of a data frame", h[1])
		}
		if h[1] != 0 {
			retries++
		}
		up, ack := h[24]&7, h[24]>>5&3
		group := bytes.Equal(h[4:10], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		if noAck := up == 1 || group; noAck != (ack == 1) {
			t.Fatalf("priority %d, group %v: ack policy %d", up, group, ack)
		}
		if !bytes.Equal(h[10:13], []byte{2, 'h', 'o'}) || !bytes.Equal(h[16:22], []byte{2, 'h', 'o', 'p', 0xff, 0xff}) || !bytes.Equal(h[26:34], []byte{0xaa, 0xaa, 3, 0, 0, 0, 8, 0}) {
			t.Fatalf("header % x", h[:34])
		}
	}
	var sum wifi.ACStats
	for i := range 3 {
		for _, ac := range l.med.Stats(i).AC {
			sum.Attempts += ac.Attempts
			sum.Retries += ac.Retries
			sum.RTS += ac.RTS
			sum.Collisions += ac.Collisions
		}
	}
	if kinds[0x88] != int(sum.Attempts) || kinds[0xb4] != int(sum.RTS) || retries != int(sum.Retries) || lost < int(sum.Collisions) || kinds[0xd4] == 0 || kinds[0xc4] == 0 || retries == 0 {
		t.Errorf("frames by first byte %v, %d retries, %d lost to collisions; counted %+v", kinds, retries, lost, sum)
	}
}

// A captured run is the run that is not captured, and its files are the same to
// the byte each time.
func TestCaptureChangesNothing(t *testing.T) {
	plain := newLab(t, nil)
	plain.run(100)
	one, two := newLab(t, nil), newLab(t, nil)
	p1, e1, _ := one.record(100)
	p2, e2, _ := two.record(100)
	if one.eng.TraceHash() != plain.eng.TraceHash() {
		t.Error("the trace hash differs")
	}
	if !bytes.Equal(p1, p2) || !bytes.Equal(e1, e2) {
		t.Error("two captures of one run differ")
	}
}

// Golden files: small ones that a person has looked at.
func TestGolden(t *testing.T) {
	l := newLab(t, func(m *wifi.MAC) { m.RTSThreshold = 1000 })
	p, e, _ := l.record(8)
	for name, got := range map[string][]byte{"small.pcapng": p, "small.log": e} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the golden file: look at it and write it with -update if it is right", path)
		}
	}
}

// What there is of the run before its time 0 is not in the files, and times count
// from it.
func TestTimeZero(t *testing.T) {
	l := newLab(t, nil)
	var p, e bytes.Buffer
	s := l.watch(NewStream(&p), NewStream(&e))
	l.run(20) // not begun: nothing
	epoch := l.eng.Now().Add(10 * ms)
	s.Begin(epoch, "time 0 is now")
	l.run(20)
	s.End(l.eng.Now())
	f := readFile(t, p.Bytes())
	if f.comment != "a test\ntime 0 is now" || !bytes.HasPrefix(e.Bytes(), []byte("# a test\n# time 0 is now\n# seconds")) {
		t.Errorf("comment %q, log %.80q", f.comment, e.Bytes())
	}
	if n := len(f.packets); n == 0 || f.packets[0].at > vtime.Time(5*ms) || f.packets[n-1].at > l.eng.Now()-epoch {
		t.Errorf("%d packets from %v on", n, f.packets[0].at)
	}
	for line := range strings.Lines(e.String()) {
		if !strings.HasPrefix(line, "#") && (strings.Contains(line[:14], "-") || strings.Contains(line, " us=-")) {
			t.Fatal("before time 0:", line)
		}
	}
}

func TestChosenInterfaces(t *testing.T) {
	l := newLab(t, nil)
	l.cfg.At = []string{"server:eth0"}
	b, e, _ := l.record(20)
	f := readFile(t, b)
	if len(f.interfaces) != 1 || f.interfaces[0].name != "server:eth0" || len(f.packets) == 0 || f.interfaces[0].seen != uint64(len(f.packets)) {
		t.Errorf("%+v, %d packets", f.interfaces, len(f.packets))
	}
	if !bytes.Contains(e, []byte(" data to=")) {
		t.Error("the event log has to have everything")
	}
	l.cfg.At = []string{"wlan0"}
	if _, err := NewSniffer(l.cfg, nil, nil); err == nil || !strings.Contains(err.Error(), `"wlan0", only air, ap:eth0, server:eth0`) {
		t.Errorf("an unknown interface: %v", err)
	}
}

// OFDM, short preambles, legacy headers, protection.
func TestOtherRadios(t *testing.T) {
	for _, c := range []struct {
		edit  func(*wifi.MAC)
		flags map[byte]uint16 // radiotap flags by first byte of the frame
		chans map[byte]uint16
	}{
		{func(m *wifi.MAC) { *m = wifi.DefaultMAC(wifi.StandardG); m.Protection = true }, map[byte]uint16{0x88: 0x10, 0xc4: 0x10}, map[byte]uint16{0x88: 0xc0, 0xc4: 0xa0}},
		{func(m *wifi.MAC) { *m = wifi.DefaultMAC(wifi.StandardA).LegacyDCF() }, map[byte]uint16{0x08: 0x10}, map[byte]uint16{0x08: 0x140}},
		{func(m *wifi.MAC) { m.Preamble = wifi.PreambleShort; m.BasicRate = vtime.MbitPerSecond }, map[byte]uint16{0x88: 0x12, 0xd4: 0x10}, map[byte]uint16{0x88: 0xa0, 0xd4: 0xa0}},
	} {
		l := newLab(t, c.edit)
		b, _, _ := l.record(20)
		found := map[byte]bool{}
		for _, p := range readFile(t, b).packets {
			if p.iface != 0 {
				continue
			}
			h := p.data[22:]
			group := h[4] == 0xff // at the basic rate
			if want, ok := c.flags[h[0]]; ok && !group {
				found[h[0]] = true
				if got := uint16(p.data[16]); got != want || le.Uint16(p.data[20:]) != c.chans[h[0]] {
					t.Fatalf("frame %02x: flags %02x, channel %04x; want %02x, %04x", h[0], got, le.Uint16(p.data[20:]), want, c.chans[h[0]])
				}
			}
			if h[0] == 0xc4 && !bytes.Equal(h[4:8], []byte{2, 'h', 'o', 'p'}) {
				t.Fatalf("CTS-to-self to % x", h[4:10])
			}
		}
		if len(found) != len(c.flags) {
			t.Errorf("only %v of the frames %v came", found, c.flags)
		}
	}
}

// A steady capture does not allocate: it is on the path of every frame of a live
// run, where no collector runs.
func TestNoAllocation(t *testing.T) {
	l := newLab(t, nil)
	s := l.watch(NewBackground(discardWriter{}, 64*bufferSize), NewBackground(discardWriter{}, 64*bufferSize))
	s.Begin(0, "")
	done := make(chan struct{})
	for _, st := range []*Stream{s.packets, s.events} {
		go func() { st.Drain(); done <- struct{}{} }()
	}
	l.run(2000)
	if n := testing.AllocsPerRun(20, func() { l.run(50) }); n > 0 {
		t.Errorf("%.0f allocations in 50 bursts", n)
	}
	s.End(l.eng.Now())
	<-done
	<-done
	if st := s.Stats(); st.Dropped() > 0 {
		t.Logf("%d records found no room", st.Dropped())
	}
}

type discardWriter struct{}

func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
