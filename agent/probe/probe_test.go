//go:build linux

package probe

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestCountersAndTheirChanges(t *testing.T) {
	before, after := make(Counters), make(Counters)
	const file = "Tcp: RtoAlgorithm ActiveOpens RetransSegs CurrEstab\nTcp: 1 10 4294967296 3\n\nTcpExt: TCPTimeouts SyncookiesSent\nTcpExt: 7 0\n"
	if err := parseCounters(strings.NewReader(file), before); err != nil {
		t.Fatal(err)
	}
	if err := parseCounters(strings.NewReader(strings.NewReplacer("4294967296 3", "4294967299 9", "7 0", "12 0").Replace(file)), after); err != nil {
		t.Fatal(err)
	}
	got := after.Since(before)
	want := []proto.Counter{{Name: "Tcp.RetransSegs", Delta: 3}, {Name: "TcpExt.TCPTimeouts", Delta: 5}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("changes %v, want %v (settings, gauges and zeros are left out)", got, want)
	}
	for _, bad := range []string{"Tcp: A B\nTcp: 1\n", "Tcp: A\n", "Tcp: A\nUdp: 1\n", "Tcp: A\nTcp: x\n"} {
		if err := parseCounters(strings.NewReader(bad), make(Counters)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	c, err := ReadCounters()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Tcp.RetransSegs", "TcpExt.TCPTimeouts", "Udp.OutDatagrams", "Ip.ForwDatagrams"} {
		if _, ok := c[name]; !ok {
			t.Errorf("this kernel does not give %s", name)
		}
	}
}

func TestTCPInfoOfAConnection(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const n = 300_000
	if _, err := c.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var s proto.Sample
	for range 200 { // until everything is acknowledged
		raw.Control(func(fd uintptr) { err = TCPInfo(int(fd), &s) })
		if err != nil || s.Acked >= n {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	// bytes_acked counts the SYN, too (RFC 4898 tcpEStatsAppHCThruOctetsAcked).
	if err != nil || s.Acked < n || s.Acked > n+1 || s.Sent != n || s.Retrans != 0 || s.InFlight != 0 || s.NotSent != 0 {
		t.Errorf("%v, %+v", err, s)
	}
	if s.CwndPackets < 10 || s.SsthreshPackets != 0 || s.SRTT <= 0 || s.MinRTT <= 0 || s.MinRTT > s.SRTT || s.RTO < 200*vtime.Millisecond || s.CAState != "open" || s.SendWindow <= 0 {
		t.Errorf("%+v", s)
	}
	c.Close()
	if err := TCPInfo(-1, &s); err == nil || !strings.Contains(err.Error(), "TCP_INFO") {
		t.Errorf("a closed descriptor: %v", err)
	}
}

func TestHostFacts(t *testing.T) {
	before := ReadHost()
	for begin := time.Now(); time.Since(begin) < 60*time.Millisecond; { // use the processor
	}
	var f proto.NodeFacts
	ReadHost().Since(before, &f)
	if f.Wall < 60*vtime.Millisecond || f.CPUUser+f.CPUSystem <= 0 {
		t.Errorf("%+v", f)
	}
	if f.RunDelay < 0 || f.PressureSome < 0 || f.Steal < 0 {
		t.Errorf("a time runs backwards: %+v", f)
	}
	t.Logf("%+v", f)
}

func TestWhatTheKernelDoesNotGiveIsNamed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	psi := write("psi", "some avg10=0.00 avg60=0.10 avg300=0.20 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	if d, err := pressureSome(psi); err != nil || d != 1234567*vtime.Microsecond {
		t.Errorf("pressure %v, %v", d, err)
	}
	if _, err := pressureSome(write("empty", "")); err == nil {
		t.Error("an empty file has no pressure")
	}
	if _, err := pressureSome(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file has no pressure")
	}
	if d, err := steal(write("stat", "cpu  10 20 30 40 50 60 70 85 0 0\ncpu0 1 2 3\n")); err != nil || d != 850*vtime.Millisecond {
		t.Errorf("steal %v, %v", d, err)
	}
	if _, err := steal(write("old", "cpu 1 2 3 4\n")); err == nil {
		t.Error("a kernel without the column has no steal time")
	}
}
