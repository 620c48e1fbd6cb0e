package capture

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Wireshark reads what we write, whatever its snap length, and finds right
// checksums, frames as long as their time on the air, and nothing to complain of.
func TestWiresharkUnderstands(t *testing.T) {
	tshark.Need(t)
	for _, snap := range []vtime.Bytes{0, DefaultSnapLen} {
		l := newLab(t, func(m *wifi.MAC) { m.RTSThreshold = 1000 })
		l.cfg.SnapLen = snap
		b, _, s := l.record(100)
		path := filepath.Join(t.TempDir(), "c.pcapng")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		tshark.Sound(t, path, "")
		var sum wifi.ACStats
		for i := range 3 {
			for _, ac := range l.med.Stats(i).AC {
				sum.Attempts, sum.Retries, sum.RTS = sum.Attempts+ac.Attempts, sum.Retries+ac.Retries, sum.RTS+ac.RTS
			}
		}
		rows := tshark.Fields(t, path, "", "frame.interface_name", "wlan.fc.type_subtype", "wlan.fc.retry", "ip.checksum.status", "udp.checksum.status", "wlan.fcs.status", "wlan_radio.duration")
		seen := map[string]uint64{}
		var us []string
		for _, r := range rows {
			seen[r[0]]++
			if r[1] != "" {
				seen["type "+r[1]]++
				us = append(us, r[6])
			}
			if r[2] == "1" {
				seen["retry"]++
			}
			for i := 3; i <= 5; i++ {
				if r[i] == "0" { // bad; 1 is good, 2 not checked
					seen["wrong checksums"]++
				}
			}
			if r[3] == "1" && r[4] == "1" && r[5] == "1" {
				seen["right checksums"]++
			}
		}
		for what, want := range map[string]uint64{
			"type 0x0028": sum.Attempts, "type 0x001b": sum.RTS, "retry": sum.Retries, "ap:eth0": s.Stats().Interfaces[1].Frames, "wrong checksums": 0,
		} {
			if seen[what] != want {
				t.Errorf("snap length %d: %s: %d packets, want %d of %v", snap, what, seen[what], want, seen)
			}
		}
		if snap == 0 && seen["right checksums"] == 0 {
			t.Error("of no frame all checksums were checked")
		}
		air := airtimes(t, l)
		for i, d := range us {
			if d != strconv.Itoa(air[i]) {
				t.Fatalf("frame %d: Wireshark takes it to last %s µs, the medium said %d", i, d, air[i])
			}
		}
	}
}

// The test above can fail: Wireshark finds one wrong bit in a checksum, and a
// header that promises more than there is.
func TestWiresharkFindsDamage(t *testing.T) {
	tshark.Need(t)
	l := newLab(t, nil)
	b, _, _ := l.record(3)
	head := bytes.Index(b, []byte{0x45, 0, 0}) // the first packet, of a wired link
	for what, at := range map[string]int{"checksum": head + 10, "length": head} {
		damaged := bytes.Clone(b)
		damaged[at] ^= 0x01 // of the header length: 16 bytes are too few
		if what == "length" {
			damaged[at] = 0x44
		}
		path := filepath.Join(t.TempDir(), "c.pcapng")
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if len(tshark.Suspects(t, path, "")) != 1 {
			t.Errorf("a wrong %s: tshark says %q", what, tshark.Suspects(t, path, ""))
		}
	}
}

// The filters that CAPTURE.md names are ones that Wireshark knows, and the words of
// the event log those that it explains.
func TestDocumentation(t *testing.T) {
	b, err := os.ReadFile("CAPTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "| filter | shows |")
	table, _, ok2 := strings.Cut(rest, "\n\n")
	if !ok || !ok2 {
		t.Fatal("CAPTURE.md has no table of filters")
	}
	var filters []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` ").FindAllStringSubmatch(table, -1) {
		filters = append(filters, "("+m[1]+")")
	}
	_, events, _ := newLab(t, func(m *wifi.MAC) { m.RTSThreshold = 1000 }).record(100)
	for line := range strings.Lines(string(events)) {
		if words := strings.Fields(line); words[0] != "#" && !strings.Contains(string(b), "`"+words[2]+"`") {
			t.Errorf("CAPTURE.md does not explain %q", words[2])
		}
	}
	if len(filters) < 5 {
		t.Fatalf("only %d filters", len(filters))
	}
	tshark.Need(t)
	if tshark.Count(t, "testdata/small.pcapng", strings.Join(filters, " || ")) == 0 {
		t.Error("the filters select nothing")
	}
}

// airtimes are those of the same run's frames, as the medium tells them.
func airtimes(t *testing.T, l *lab) (us []int) {
	again := newLab(t, func(m *wifi.MAC) { m.RTSThreshold = 1000 })
	again.med.SetMonitor(&durations{us: &us})
	again.run(100)
	if again.eng.TraceHash() != l.eng.TraceHash() {
		t.Fatal("the second run is another one")
	}
	return us
}

type durations struct{ us *[]int }

func (*durations) Air(*wifi.Transmission) {}
func (d *durations) Landed(_ vtime.Time, t *wifi.Transmission) {
	*d.us = append(*d.us, int(t.End.Sub(t.Start)/vtime.Microsecond))
}
func (*durations) Dropped(vtime.Time, *wifi.Frame, wifi.Outcome) {}
