package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hopbed/hopbed/deploy/sshclient"
)

// Tools are the programs that are looked for on nodes.
var Tools = []string{"ip", "tc", "iw", "iwconfig", "iwpriv", "hostapd", "iperf3", "iperf", "tcpdump", "modprobe"}

// script says what a node has. $1 is the interface of experiments or empty, $2 the
// radio's base device or empty, the rest are tools. Nothing is loaded or changed.
const script = `LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
export LC_ALL PATH
say() { printf 'hopbed:%s %s\n' "$1" "$2"; }
i=$1 d=${2:-wifi0}; shift 2
have=
for t in "$@"; do if command -v "$t" >/dev/null 2>&1; then have="$have $t"; fi; done
say tools "$have"
r=$(uname -r)
if [ -d /sys/module/sch_netem ] || modprobe -n -q sch_netem 2>/dev/null || grep -qs '/sch_netem\.ko' "/lib/modules/$r/modules.builtin" "/lib/modules/$r/modules.dep" || [ -e "/lib/modules/$r/sch_netem.ko" ]; then say netem yes
elif [ -r /proc/config.gz ] && zcat /proc/config.gz 2>/dev/null | grep -q '^CONFIG_NET_SCH_NETEM=y'; then say netem yes
elif [ -r /proc/config.gz ] && zcat /proc/config.gz 2>/dev/null | grep -q '^CONFIG_'; then say netem no
elif [ -e "/lib/modules/$r/modules.dep" ] || [ -e "/lib/modules/$r/modules.builtin" ]; then say netem no
else say netem unknown; fi
w=
for p in /sys/class/net/*/phy80211; do
  if [ -e "$p" ]; then p=${p%/phy80211}; w="$w ${p##*/}"; fi
done
say nl80211 "$w"
w=
for p in /proc/net/madwifi/*; do if [ -e "$p" ]; then w="$w ${p##*/}"; fi; done
say madwifi "$w"
if [ -e "/sys/class/net/$d" ] || [ -d "/proc/sys/dev/$d" ]; then say device yes; fi
if [ -n "$i" ] && [ -e "/sys/class/net/$i" ]; then
  say interface yes
  read -r s <"/sys/class/net/$i/operstate" && say state "$s"
  m=$(readlink "/sys/class/net/$i/device/driver/module" || readlink "/sys/class/net/$i/device/driver") 2>/dev/null
  say module "${m##*/}"
  a=
  for x in $(ip addr show dev "$i" 2>/dev/null); do
    case $x in *.*.*.*/*|*:*/*) a="$a $x";; esac
  done
  say addresses "$a"
fi
run=$(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's|.* /proc/\([0-9]*\)/exe -> .*/hopbed-agent-.*|\1|p' | tr '\n' ' ')
say running "$run"
say end ok
`

// dateRounds is how often date is asked: each time a program is started.
const dateRounds = 3

// clockByDate reads the clock through the program date: with its resolution, and
// with the start of a program in the round trip.
func clockByDate(ctx context.Context, c sshclient.Client) (*Clock, error) {
	var coarse int64
	best, err := rounds(dateRounds, func() (int64, error) {
		out, _, err := c.Run(ctx, nil, "date", "+%s.%N")
		if err != nil {
			return 0, err
		}
		at, resolution, err := parseDate(string(out))
		coarse = max(coarse, resolution)
		return at, err
	})
	if err != nil {
		return nil, err
	}
	best.By = "date"
	// A clock that shows whole seconds is between what it shows and the next one.
	best.OffsetNS += coarse / 2
	best.BoundNS += coarse / 2
	return best, nil
}

// parseDate reads SECONDS.NANOSECONDS; BusyBox's date may know no nanoseconds, and
// prints the letters or nothing.
func parseDate(s string) (unixNS, resolutionNS int64, err error) {
	lines := strings.Fields(s)
	if len(lines) == 0 {
		return 0, 0, fmt.Errorf("date printed nothing")
	}
	s = lines[len(lines)-1] // what came before it is a login script's
	whole, part, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("date printed %q", s)
	}
	unixNS = sec * int64(time.Second)
	ns, err := strconv.ParseInt(part, 10, 64)
	if err != nil || len(part) != 9 {
		return unixNS, int64(time.Second), nil
	}
	return unixNS + ns, 1, nil
}

// channel is a program's standard input and output; closing it ends its input.
type channel struct{ sshclient.Process }

// Close ends the input.
func (c channel) Close() error { return c.CloseWrite() }

// words keeps a program's last words.
type words struct {
	mu sync.Mutex
	b  []byte
}

// Write keeps the end.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if over := len(w.b) - 2000; over > 0 {
		w.b = append(w.b[:0], w.b[over:]...)
	}
	return len(p), nil
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.b))
}
