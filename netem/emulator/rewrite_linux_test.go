package emulator_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// The segments of kernels' TCP, with timestamps, SACK and scaled windows, arrive
// with rewritten windows and checksums that the kernels take; both ways, the queue
// holds what they may have under way.
func TestWindowsOfTheKernelAreRewritten(t *testing.T) {
	const sta, ap, server = 0, 1, 2
	const buffer = 6
	cfg := accessPoint()
	cfg.Nodes[ap].Rewriting = &winrewrite.Config{Buffer: buffer}
	l := bareLab(t, cfg, emulator.Options{})
	for i, name := range []string{"wlan0", "wlan0", "eth0"} {
		l.attach(i, name)
	}
	l.neighbour(sta, "wlan0", ap, tap.HardwareAddr(ap))
	l.route(sta, "wlan0", ap, ap)
	l.route(sta, "wlan0", server, ap)
	l.neighbour(ap, "wlan0", sta, tap.HardwareAddr(sta))
	l.route(ap, "wlan0", sta, sta)
	l.neighbour(ap, "eth0", server, tap.PipeHardwareAddr(server, 0))
	l.route(ap, "eth0", server, server)
	l.neighbour(server, "eth0", ap, tap.PipeHardwareAddr(ap, 0))
	l.route(server, "eth0", ap, ap)
	l.route(server, "eth0", sta, ap)
	for _, ends := range [][2]int{{server, sta}, {sta, server}} {
		if n, same, _ := l.transfer(ends[0], ends[1], 400<<10, ""); n != 400<<10 || !same {
			t.Errorf("from %d: %d bytes arrived, or other ones", ends[0], n)
		}
	}
	for _, i := range []int{sta, server} {
		l.inside(i, func() error {
			b, err := os.ReadFile("/proc/thread-self/net/snmp")
			if err != nil {
				return err
			}
			var rows [][]string
			for _, line := range strings.Split(string(b), "\n") {
				if strings.HasPrefix(line, "Tcp:") {
					rows = append(rows, strings.Fields(line))
				}
			}
			for k, name := range rows[0] {
				if name == "InCsumErrors" && rows[1][k] != "0" {
					t.Errorf("node %d: %s %s", i, name, rows[1][k])
				}
			}
			return nil
		})
	}
	r := l.stop()
	w := r.Nodes[ap].Rewriting
	// Two connections count at once only for the seconds between the transfers.
	if w == nil || w.Rewritten < 400 || w.Unscaled != 0 || w.MaxActive != 2 || w.MinLimit != buffer/2 {
		t.Errorf("the filter counted %+v", w)
	}
	// The first transfer has six segments under way at most, and the acknowledgement
	// of its end may wait beside the next one's segments.
	if q := r.Nodes[ap].Stats.AC[wifi.BE]; q.MaxQueue > buffer+1 {
		t.Errorf("%d packets waited in the access point, want at most %d", q.MaxQueue, buffer+1)
	}
	if r.Nodes[sta].Rewriting != nil {
		t.Error("the station has a filter")
	}
}

func TestAFilterNeedsARadio(t *testing.T) {
	cfg := accessPoint()
	for i := range cfg.Nodes {
		cfg.Nodes[i].PID = 1
	}
	cfg.Nodes[2].Rewriting = &winrewrite.Config{Buffer: 5}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "no radio") {
		t.Errorf("a wired node: %v", err)
	}
	cfg.Nodes[2].Rewriting, cfg.Nodes[1].Rewriting = nil, &winrewrite.Config{}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "buffer of 0 packets") {
		t.Errorf("no buffer: %v", err)
	}
}
