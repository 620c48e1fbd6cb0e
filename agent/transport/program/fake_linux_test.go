package program_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/transport"
)

// This test binary also is the programs that it runs: iperf3 under that name, as
// the folder FAKES says, and the programs of the transport exec by their
// first argument.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case "iperf3":
		os.Exit(fakeIperf3())
	case "iperf":
		fmt.Println("a program that measures nothing")
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Getenv("HOPBED_SIDE") != "" {
		if f := userPrograms[os.Args[1]]; f != nil {
			os.Exit(f())
		}
	}
	agenttest.Main(m)
}

// installFakes makes iperf3 and iperf of this test binary the first in PATH. They
// look for their modes in the folder FAKES, by port.
func installFakes(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"iperf3", "iperf"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FAKES", t.TempDir())
}

// misbehave says how the fakes of a flow behave: MODE or SIDE:MODE.
func misbehave(t *testing.T, flow int, mode string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(os.Getenv("FAKES"), strconv.Itoa(transport.FlowPort+flow)), []byte(mode), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fakeMode is what this process was told by misbehave.
func fakeMode() string {
	port := os.Args[slices.Index(os.Args, "-p")+1]
	b, err := os.ReadFile(filepath.Join(os.Getenv("FAKES"), port))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// asked returns a channel that gets the request to end.
func asked() chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

type fakeSum struct {
	Start, End float64
	Bytes      int64
}

// fakeReport is a document of 100,000 bytes a second in intervals of 100 ms.
func fakeReport(length time.Duration, scale int64, errorText string) string {
	type wrapped struct {
		Sum fakeSum `json:"sum"`
	}
	var list []wrapped
	total := int64(0)
	for at := 0.0; at < length.Seconds(); at += 0.1 {
		end := min(at+0.1, length.Seconds())
		s := fakeSum{at, end, scale * int64(100_000*(end-at))}
		if s.End > s.Start+0.0005 {
			list = append(list, wrapped{s})
			total += s.Bytes
		}
	}
	b, _ := json.Marshal(map[string]any{
		"start":     map[string]any{"connected": []any{map[string]any{}}, "test_start": map[string]any{}},
		"intervals": list, "end": map[string]any{"sum_received": map[string]any{"bytes": total, "end": length.Seconds()}}, "error": errorText,
	})
	return strings.NewReplacer(`"Start"`, `"start"`, `"End"`, `"end"`, `"Bytes"`, `"bytes"`).Replace(string(b))
}

// fakeIperf3 behaves on either side as it was told.
func fakeIperf3() int {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("iperf 3.12 (of a test)")
		return 0
	}
	server := slices.Contains(os.Args, "-s")
	mode := fakeMode()
	if side, of, ok := strings.Cut(mode, ":"); ok {
		mode = "well"
		if (side == "server") == server {
			mode = of
		}
	}
	stop, begun := asked(), time.Now()
	switch mode {
	case "well":
		<-stop
		fmt.Println(fakeReport(time.Since(begun), 1, "interrupt"))
	case "hangs":
		for range stop {
		}
	case "dies":
		time.Sleep(600 * time.Millisecond)
		whole := fakeReport(600*time.Millisecond, 1, "")
		fmt.Print(whole[:strings.LastIndex(whole, `{"sum":`)+9])
		fmt.Fprintln(os.Stderr, "iperf3: it hurts")
		return 3
	case "ends early":
		time.Sleep(300 * time.Millisecond)
		fmt.Println(fakeReport(300*time.Millisecond, 1, "control socket has closed unexpectedly"))
		return 1
	case "lies":
		<-stop
		fmt.Println(fakeReport(time.Since(begun), 1_000_000, "interrupt"))
	case "silent":
		return 0
	case "refused":
		fmt.Println(`{"start":{"connected":[]},"intervals":[],"end":{},"error":"error - unable to connect to server: Connection refused"}`)
		return 1
	case "misled":
		fmt.Fprintln(os.Stderr, "iperf3: parameter error - unrecognised option")
		return 1
	case "leaves last":
		<-stop
		fmt.Println(strings.Replace(fakeReport(200*time.Millisecond, 1, "interrupt"), `"sum_received"`, `"other"`, 1))
	}
	return 0
}

// userPrograms are programs as a user of exec may write them.
var userPrograms = map[string]func() int{
	"exec-udp-send":    udpSend,
	"exec-udp-receive": udpReceive,
	"exec-env":         sayEnvironment,
	"exec-next-send":   func() int { os.Setenv("HOPBED_DST", os.Getenv("HOPBED_NEXT")); return udpSend() },
	"exec-next-relay":  udpRelay,
	"exec-quiet":       func() int { <-asked(); return 0 },
	"exec-garbage":     func() int { fmt.Println("Traceback (most recent call last):"); <-asked(); return 0 },
	"exec-fails":       func() int { fmt.Fprintln(os.Stderr, "no such peer"); return 4 },
	"exec-starved":     func() int { return 75 },
	"exec-ends":        func() int { fmt.Println(`{"bytes": 10}`); return 0 },
	"exec-back":        func() int { fmt.Println("{\"bytes\": 10}\n{\"bytes\": 9}"); <-asked(); return 0 },
	"exec-boasts":      func() int { fmt.Println(`{"bytes": 9000000000000}`); <-asked(); return 0 },
	"exec-future":      func() int { fmt.Println(`{"bytes": 1, "t": 90000000000}`); <-asked(); return 0 },
	"exec-stubborn": func() int {
		fmt.Println(`{"bytes": 1, "stubborn": 1}`)
		for range asked() {
		}
		return 0
	},
	"exec-sulks": func() int { fmt.Println(`{"bytes": 1}`); <-asked(); return 9 },
	"exec-leaves": func() int { // a child in a session of its own, which holds the output open
		c := exec.Command("sleep", "1000")
		c.Stdout, c.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return 5
		}
		fmt.Printf("{\"bytes\": 1, \"ns_pid\": %d}\n", c.Process.Pid)
		os.WriteFile(os.Getenv("HOPBED_TEST_MARK"), []byte("started"), 0o600)
		<-asked()
		return 0
	},
}

// udpSend sends 1,000-byte datagrams every 2 ms until it is told to end, or,
// with a size, so many bytes.
func udpSend() int {
	c, err := net.Dial("udp4", net.JoinHostPort(os.Getenv("HOPBED_DST"), os.Getenv("HOPBED_PORT")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop, size, sent := asked(), number("HOPBED_SIZE"), int64(0)
	b := make([]byte, 1000)
	for size == 0 || sent < size {
		select {
		case <-stop:
			return 0
		case <-time.After(2 * time.Millisecond):
		}
		binary.BigEndian.PutUint64(b, uint64(sent))
		if _, err := c.Write(b); err == nil {
			sent += int64(len(b))
			fmt.Printf("{\"bytes\": %d}\n", sent)
		}
	}
	return 0
}

func udpReceive() int {
	port := int(number("HOPBED_PORT"))
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(os.Getenv("HOPBED_ADDR")), Port: port})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(`{"bytes": 0}`)
	go func() { <-asked(); os.Exit(0) }()
	b := make([]byte, 2000)
	total, got := 0, 0
	for {
		n, err := c.Read(b)
		if err != nil {
			return 1
		}
		total, got = total+n, got+1
		fmt.Printf("{\"bytes\": %d, \"datagrams\": %d}\n", total, got)
	}
}

// udpRelay passes on what comes, and leaves a letter in a file when it begins.
func udpRelay() int {
	f, err := os.OpenFile(os.Getenv("HOPBED_TEST_MARK"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	fmt.Fprint(f, "r")
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(os.Getenv("HOPBED_ADDR")), Port: int(number("HOPBED_PORT"))})
	if err != nil {
		return 1
	}
	to := &net.UDPAddr{IP: net.ParseIP(os.Getenv("HOPBED_NEXT")), Port: int(number("HOPBED_PORT"))}
	b := make([]byte, 2000)
	for passed := 0; ; passed++ {
		n, err := c.Read(b)
		if err != nil {
			return 1
		}
		_, _ = c.WriteTo(b[:n], to) // nobody may listen yet
		fmt.Printf("{\"passed\": %d}\n", passed+1)
	}
}

func number(name string) int64 {
	n, _ := strconv.ParseInt(os.Getenv(name), 10, 64)
	return n
}

// sayEnvironment writes what it was told to a file, and receives as udpReceive.
func sayEnvironment() int {
	var own []string
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "HOPBED_") {
			own = append(own, v)
		}
	}
	dir, _ := os.Getwd()
	slices.Sort(own)
	text := strings.Join(append(own, "DIR="+dir), "\n")
	if err := os.WriteFile(os.Getenv("HOPBED_TEST_MARK")+os.Getenv("HOPBED_SIDE"), []byte(text), 0o600); err != nil {
		return 1
	}
	if os.Getenv("HOPBED_SIDE") == "receive" {
		return udpReceive()
	}
	<-asked()
	return 0
}
