package tshark

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
)

// Need skips the test where there is no tshark.
func Need(t testing.TB) {
	t.Helper()
	testenv.Need(t, testenv.Program("tshark"))
}

// run runs tshark with its settings at their defaults and returns what it
// prints.
func run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("tshark", append([]string{"-n"}, args...)...)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir(), "LC_ALL=C") // no settings of the user
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("tshark %v: %v: %s", args, err, errs.String())
	}
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "cut short") || strings.Contains(line, "damaged or corrupt") {
			t.Fatalf("tshark %v: %s", args, line)
		}
	}
	return out.String()
}

// strict makes tshark check what it takes on trust otherwise.
var strict = []string{"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "wlan.check_checksum:TRUE"}

// plain keeps Wireshark from guessing what the content of our flows might be: it
// would take some of the test pattern for Thrift or another protocol.
var plain = []string{"-d", "tcp.port==20000-32767,data", "-d", "udp.port==20000-32767,data", "-d", "udp.port==4410,data"}

// Fields returns the fields of the packets of a file that a display filter
// selects ("" = all), one row a packet. A field that occurs several times is
// separated by commas.
func Fields(t testing.TB, file, filter string, fields ...string) [][]string {
	t.Helper()
	return FieldsAs(t, file, plain, filter, fields...)
}

// FieldsAs is Fields with other arguments of tshark in place of those that keep it
// from decoding the content of flows, such as "-d", "tcp.port==20000,tcpcl".
func FieldsAs(t testing.TB, file string, as []string, filter string, fields ...string) [][]string {
	t.Helper()
	args := append([]string{"-r", file, "-T", "fields", "-E", "occurrence=a"}, slices.Concat(strict, as)...)
	if filter != "" {
		args = append(args, "-Y", filter)
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var rows [][]string
	for line := range strings.Lines(run(t, args...)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

// Count is the number of packets that a display filter selects.
func Count(t testing.TB, file, filter string) int {
	t.Helper()
	return len(Fields(t, file, filter, "frame.number"))
}

// Select writes the packets that a display filter selects to another file: only
// then does the analysis of TCP see these alone.
func Select(t testing.TB, file, filter, to string) {
	t.Helper()
	run(t, "-r", file, "-Y", filter, "-w", to)
}

// warned selects warnings and errors of tshark's expert, by severity
// (epan/proto.h).
const warned = "_ws.expert.severity >= 0x600000"

// TCPRemarks selects what tshark warns of in a sound capture of TCP: its analysis
// of losses and repeats, duplicate SACKs and resets.
const TCPRemarks = "tcp.analysis.flags || tcp.options.sack.dsack || tcp.connection.rst"

// Sound fails the test if tshark finds a packet malformed or with a wrong
// checksum, warns of anything, or if there are no packets. What the filter except
// selects may be warned of ("" = nothing).
func Sound(t testing.TB, file, except string) {
	t.Helper()
	bad := Suspects(t, file, except)
	for i, text := range bad {
		if t.Errorf("tshark: %s", text); i == 9 {
			t.Errorf("… and %d more", len(bad)-10)
			break
		}
	}
}

// Suspects describes the packets that tshark finds malformed, with a wrong
// checksum, or warns of; of the last except those that the filter selects. It fails the test if there are no packets.
func Suspects(t testing.TB, file, except string) (bad []string) {
	t.Helper()
	filter := warned
	if except != "" {
		filter = "(" + warned + " && !(" + except + "))"
	}
	filter = strings.Join(append([]string{"frame.number == 1", "_ws.malformed", filter}, wrong()...), " || ")
	rows := Fields(t, file, filter, append([]string{"frame.number", "frame.protocols", "_ws.expert.message", "_ws.malformed", "_ws.expert.severity"}, checksums...)...)
	for _, row := range rows {
		// The first packet is there to show that there are any.
		if row[0] != "1" || row[3] != "" || grave(row[4]) || slices.Contains(row[5:], "0") {
			bad = append(bad, "packet "+strings.Join(row, "; "))
		}
	}
	if len(rows) == 0 {
		t.Errorf("tshark finds no packet in %s", file)
	}
	return bad
}

// checksums are the fields that say whether one is wrong (0), right or not
// checked.
var checksums = []string{"ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "wlan.fcs.status"}

func wrong() (filters []string) {
	for _, c := range checksums {
		filters = append(filters, c+" == 0")
	}
	return filters
}

// grave says whether one of the severities, as numbers with commas between, is a
// warning or an error.
func grave(severities string) bool {
	for _, s := range strings.Split(severities, ",") {
		if n, err := strconv.ParseInt(s, 0, 64); err == nil && n >= 0x600000 {
			return true
		}
	}
	return false
}
