package spec

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// MaxTransfers bounds the messages of one trace, and MaxAllTransfers those of the
// traces of all flows of a point, each flow counted: the order that configures a
// node holds those of its flows.
const (
	MaxTransfers    = 50_000
	MaxAllTransfers = 80_000
)

// maxTransfer is the largest message of a trace.
const maxTransfer = 1_000_000_000 * vtime.Byte

const transfersHelp = "a trace of messages: one line for each with its time in seconds since the begin of the flow, not descending, and its size in bytes, as in 0.25 1400; # begins a comment"

// Transfer is one message of a trace.
type Transfer struct {
	At   vtime.Duration // since the begin of the flow
	Size vtime.Bytes
}

// ReadTransfers reads a trace of messages: one line for each with the time in
// seconds and the size in bytes, separated by blanks, in ascending order of
// time. Empty lines and what follows a # do not count. The error names the line.
func ReadTransfers(text []byte) ([]Transfer, error) {
	var out []Transfer
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	n := 0
	for lines.Scan() {
		n++
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		bad := func(what string) error { return fmt.Errorf("line %d, %s: %s", n, quote(strings.TrimSpace(line)), what) }
		if len(fields) != 2 {
			return nil, bad("not two numbers, seconds and bytes")
		}
		if !decimal.MatchString(fields[0]) || strings.HasPrefix(fields[0], "-") {
			return nil, bad("the time is no number of seconds such as 0.25")
		}
		at, err := vtime.ParseDuration(strings.TrimPrefix(fields[0], "+") + "s")
		if err != nil || at > 192*vtime.Hour {
			return nil, bad("the time is no number of seconds up to 192 h")
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || size < 1 || vtime.Bytes(size) > maxTransfer {
			return nil, bad(fmt.Sprintf("the size is no whole number of bytes from 1 to %d", int64(maxTransfer)))
		}
		if k := len(out); k > 0 && at < out[k-1].At {
			return nil, bad(fmt.Sprintf("the time is before that of the message before it, %vs", out[k-1].At.Seconds()))
		}
		if len(out) == MaxTransfers {
			return nil, fmt.Errorf("line %d: more than %d messages", n, MaxTransfers)
		}
		out = append(out, Transfer{at, vtime.Bytes(size)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no message")
	}
	return out, nil
}
