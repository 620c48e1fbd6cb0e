package emulator_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// captureFiles are files for a capture, and a function that reads them.
func captureFiles(t *testing.T, opt *emulator.Options) (path string, read func() (packets, events []byte)) {
	t.Helper()
	dir := t.TempDir()
	create := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	opt.Packets, opt.Events = create("c.pcapng"), create("c.log")
	return opt.Packets.Name(), func() ([]byte, []byte) {
		p, err := os.ReadFile(opt.Packets.Name())
		if err != nil {
			t.Fatal(err)
		}
		e, err := os.ReadFile(opt.Events.Name())
		if err != nil {
			t.Fatal(err)
		}
		return p, e
	}
}

// blocks counts the blocks of a pcapng file by type.
func blocks(t *testing.T, b []byte) map[uint32]int {
	t.Helper()
	n := map[uint32]int{}
	for len(b) > 0 {
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if size < 12 || size > len(b) || binary.LittleEndian.Uint32(b[size-4:]) != uint32(size) {
			t.Fatalf("a block of %d bytes, %d are left", size, len(b))
		}
		n[binary.LittleEndian.Uint32(b)]++
		b = b[size:]
	}
	return n
}

const packetBlock = 6

// lastACK is ample for the ACK of a frame that has arrived: 258 µs.
const lastACK = 20 * time.Millisecond

// The air: the kernels' own packets from time 0 on, whole, in 802.11 frames.
func TestCaptureOfTheAir(t *testing.T) {
	cfg := line(2, 100, 150, 350)
	cfg.Capture = &emulator.Capture{Comment: "a live run"}
	opt := emulator.Options{}
	path, read := captureFiles(t, &opt)
	l := newLab(t, cfg, opt, nil)
	l.ping(0, 1) // before time 0: not in the capture
	epoch := l.begin(20*ms, 0, vtime.Duration(vtime.Hour))
	sleepUntil(epoch, ms)
	l.ping(0, 1)
	l.ping(1, 0)
	time.Sleep(lastACK)
	r := l.stop()
	packets, events := read()
	c := r.Capture
	if c == nil || c.PacketsError+c.EventsError != "" || c.Dropped() != 0 || len(c.Interfaces) != 1 || c.Interfaces[0].Name != "air" {
		t.Fatalf("%+v", c)
	}
	// Two requests, two replies, and the ACK of each.
	if n := blocks(t, packets)[packetBlock]; n != 8 || c.Interfaces[0].Frames != 8 {
		t.Errorf("%d frames are in the file, %d were seen; want 8", n, c.Interfaces[0].Frames)
	}
	for seq := uint16(1); seq <= 3; seq++ {
		if found := bytes.Contains(packets, echoRequest(seq)); found != (seq > 1) {
			t.Errorf("echo request %d is in the file: %v", seq, found)
		}
	}
	if !bytes.Contains(packets, []byte("a live run\ntime 0 is ")) {
		t.Error("the file does not say what it is, and of when")
	}
	if n := bytes.Count(events, []byte(" data to=n0")); n != 4 || c.Events != 8 {
		t.Errorf("%d frames of data in the log of %d lines:\n%s", n, c.Events, events)
	}
	if testing.Short() {
		return
	}
	tshark.Need(t)
	tshark.Sound(t, path, "")
	if n := tshark.Count(t, path, "icmp && radiotap"); n != 4 {
		t.Errorf("tshark finds %d echos, want 4", n)
	}
}

// A wired link: what passes either end, from the run's time 0 on, where the pipe
// is made anew.
func TestCaptureOfAWire(t *testing.T) {
	opt := emulator.Options{}
	path, read := captureFiles(t, &opt)
	cfg := &emulator.Config{Seed: 7, Nodes: []emulator.Node{{NoRadio: true}, {NoRadio: true}}, Capture: &emulator.Capture{}}
	l := pairOf(t, cfg, pipe.Config{Rate: 10 * vtime.MbitPerSecond, Delay: 5 * ms, Queue: pipe.Queue{Packets: 50}}, opt)
	epoch := l.begin(20*ms, 0, vtime.Duration(vtime.Hour))
	sleepUntil(epoch, ms)
	l.ping(0, 1)
	r := l.stop()
	packets, events := read()
	if n := blocks(t, packets)[packetBlock]; n != 4 || r.Capture.PacketsError+r.Capture.EventsError != "" || len(r.Capture.Interfaces) != 2 || r.Capture.Interfaces[1].Frames != 2 {
		t.Errorf("%d packets are in the file, want request and reply at two ends: %+v", n, r.Capture)
	}
	if s := string(events); strings.Count(s, " enter to=") != 2 || strings.Count(s, " arrive from=") != 2 {
		t.Errorf("the log:\n%s", s)
	}
	if testing.Short() {
		return
	}
	tshark.Need(t)
	tshark.Sound(t, path, "")
}

// A full disk costs the capture, not the run.
func TestCaptureOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cfg := line(2, 100, 150, 350)
	cfg.Capture = &emulator.Capture{SnapLen: 64}
	l := newLab(t, cfg, emulator.Options{Packets: full}, nil)
	epoch := l.begin(20*ms, 0, vtime.Duration(vtime.Hour))
	sleepUntil(epoch, ms)
	l.ping(0, 1)
	time.Sleep(lastACK)
	r := l.stop()
	if r.Capture == nil || !strings.Contains(r.Capture.PacketsError, "no space left") || r.Capture.Interfaces[0].Frames != 4 {
		t.Errorf("%+v", r.Capture)
	}
}

// An interface that does not exist is an error at the start.
func TestCaptureAtNoInterface(t *testing.T) {
	cfg := line(2, 100, 150, 350)
	cfg.Nodes = make([]emulator.Node, 2)
	cfg.Capture = &emulator.Capture{At: []string{"wlan0"}}
	for i := range cfg.Nodes {
		cfg.Nodes[i] = emulator.Node{Name: "n", PID: holder(t)}
	}
	if _, err := emulator.Start(t.Context(), cfg, emulator.Options{}); err == nil || !strings.Contains(err.Error(), `"wlan0"`) {
		t.Errorf("%v", err)
	}
}
