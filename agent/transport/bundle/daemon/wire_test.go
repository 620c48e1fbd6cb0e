//go:build linux

package daemon_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/tshark"
	"github.com/hopbed/hopbed/netem/vtime"
)

// pcap collects frames as a file of that format, with nanoseconds.
type pcap struct {
	mu  sync.Mutex
	buf []byte
}

func newPcap() *pcap {
	const magicNS, ethernet = 0xa1b23c4d, 1
	le := binary.LittleEndian
	b := le.AppendUint32(nil, magicNS)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = le.AppendUint32(append(b, make([]byte, 8)...), 65535)
	return &pcap{buf: le.AppendUint32(b, ethernet)}
}

func (p *pcap) add(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	le, now := binary.LittleEndian, probe.MonotonicNS()
	p.buf = le.AppendUint32(p.buf, uint32(now/1e9))
	p.buf = le.AppendUint32(p.buf, uint32(now%1e9))
	p.buf = le.AppendUint32(p.buf, uint32(len(frame)))
	p.buf = le.AppendUint32(p.buf, uint32(len(frame)))
	p.buf = append(p.buf, frame...)
}

// TestWiresharkReadsIt: Wireshark's dissectors of TCPCLv4 and the bundle protocol
// find nothing wrong in sessions over kernel TCP, and every checksum right.
func TestWiresharkReadsIt(t *testing.T) {
	tshark.Need(t)
	p := newPcap()
	l := agenttest.New(t, 2, agenttest.Options{Watch: func(_ int, frame []byte) { p.add(frame) }})
	l.SetLink(0, 1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	var flows []proto.Flow
	for id, w := range []workload.Spec{
		{Kind: workload.Sized, Size: 450_000},
		{Kind: workload.Trace, Transfers: []workload.Transfer{{Size: 10}, {At: vtime.Second / 2, Size: 5000}}},
	} {
		f := l.Flow(proto.Flow{ID: id, Transport: "bundle/cubic", Src: 0, Dst: 1, Workload: w})
		f.Options.Bundle = &proto.Bundle{Size: 150_000}
		flows = append(flows, f)
	}
	l.ConfigureChain(flows, nil)
	const end = 3 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		if dst := agenttest.Result(t, rs, f.ID, proto.Destination); dst.Error != nil || !dst.Finished {
			t.Fatalf("flow %d: %+v", f.ID, dst)
		}
	}
	file := filepath.Join(t.TempDir(), "session.pcap")
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := os.WriteFile(file, p.buf, 0o600); err != nil {
		t.Fatal(err)
	}
	// Two passes (-2): whether a segment has an acknowledgement is seen later.
	rows := tshark.FieldsAs(t, file, []string{"-2", "-d", "tcp.port==20000,tcpcl", "-d", "tcp.port==20001,tcpcl"}, "tcpcl || _ws.malformed",
		"_ws.malformed", "_ws.expert.message", "tcpcl.v4.mhdr.type", "tcpcl.contact_hdr.version", "tcpcl.v4.sess_init.nodeid_data", "bpv7.crc_status")
	columns := make([][]string, 6)
	for _, row := range rows {
		for i, f := range row {
			if f != "" {
				columns[i] = append(columns[i], strings.Split(f, ",")...)
			}
		}
	}
	malformed, remarks, types, versions, ids, sums := columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
	if len(malformed) > 0 {
		t.Errorf("malformed: %v", malformed)
	}
	for _, r := range remarks {
		// That it has no dissector for a payload, and what TCP did.
		if r != "Unknown type code" && !strings.HasPrefix(r, "Connection ") && !strings.HasPrefix(r, "This frame ") {
			t.Errorf("tshark: %s", r)
		}
	}
	count := map[string]int{}
	for _, typ := range types {
		count[typ]++
	}
	// Two sessions; three bundles of 150 kB in three segments each, and two of one.
	for typ, want := range map[string]int{"0x07": 4, "0x01": 11, "0x02": 11, "0x05": 4, "0x03": 0, "0x06": 0} {
		if count[typ] != want {
			t.Errorf("%d messages of type %s, want %d: %v", count[typ], typ, want, count)
		}
	}
	if len(versions) != 4 || versions[0] != "4" {
		t.Errorf("contact headers of versions %v", versions)
	}
	if len(ids) != 4 || ids[0] != "ipn:1.0" {
		t.Errorf("node ids %v", ids)
	}
	// Of each of the five bundles the primary, the hop count, the previous node and
	// the payload block have a checksum.
	for _, s := range sums {
		if s != "1" && s != "Good" {
			t.Errorf("checksums %v", sums)
			break
		}
	}
	if len(sums) != 5*4 {
		t.Errorf("%d checksums, want %d", len(sums), 5*4)
	}
}
