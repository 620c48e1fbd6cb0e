package probe

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
)

// Counters are the protocol counters of one network namespace by name, such as
// "Tcp.RetransSegs" and "TcpExt.TCPTimeouts".
type Counters map[string]int64

// ReadCounters reads /proc/net/snmp and /proc/net/netstat of the namespace of
// the calling thread.
func ReadCounters() (Counters, error) {
	c := make(Counters)
	for _, name := range []string{"snmp", "netstat"} {
		// thread-self, not net: /proc/net is the namespace of the process's
		// first thread.
		f, err := os.Open("/proc/thread-self/net/" + name)
		if err != nil {
			return nil, fmt.Errorf("protocol counters: %w", err)
		}
		err = parseCounters(f, c)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("protocol counters: /proc/net/%s: %w", name, err)
		}
	}
	return c, nil
}

// parseCounters reads pairs of lines "Group: name …" and "Group: value …".
func parseCounters(r io.Reader, to Counters) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		names := strings.Fields(s.Text())
		if len(names) == 0 {
			continue
		}
		if !s.Scan() {
			return fmt.Errorf("group %s has no line of values", names[0])
		}
		values := strings.Fields(s.Text())
		if len(values) != len(names) || values[0] != names[0] {
			return fmt.Errorf("group %s has %d names and %d values of %s", names[0], len(names), len(values), values[0])
		}
		group := strings.TrimSuffix(names[0], ":")
		for i := 1; i < len(names); i++ {
			v, err := strconv.ParseInt(values[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", group, names[i], err)
			}
			to[group+"."+names[i]] = v
		}
	}
	return s.Err()
}

// gauges are the values of these files that are settings or states, not
// counters; their difference means nothing.
var gauges = map[string]bool{"Ip.Forwarding": true, "Ip.DefaultTTL": true, "Tcp.RtoAlgorithm": true, "Tcp.RtoMin": true, "Tcp.RtoMax": true, "Tcp.MaxConn": true, "Tcp.CurrEstab": true}

// Since returns the non-zero changes since before, sorted by name.
func (c Counters) Since(before Counters) []proto.Counter {
	var out []proto.Counter
	for name, v := range c {
		if d := v - before[name]; d != 0 && !gauges[name] {
			out = append(out, proto.Counter{Name: name, Delta: d})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
