package radiotest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Phy is an nl80211 of one phy with one interface, wlan0, as Linux 6.12 and its
// mac80211 behave. It understands the commands of iw, ip and hostapd that the
// driver gives.
type Phy struct {
	t        testing.TB
	Up       bool
	State    radio.Wireless
	User     *vtime.DBm // the power that was set; nil = auto
	Limit    vtime.DBm  // that the regulatory domain permits
	Basic    []vtime.BitRate
	Mcast    vtime.BitRate
	NoAck    int
	Debugfs  bool // shows the mask of rates
	Mask     []vtime.BitRate
	Hostapd  string   // its configuration while it runs
	Missing  []string // programs that are not there
	Lies     []string // settings that are accepted and not made: "txpower" …
	NoCfg    bool     // the interface is no interface of cfg80211
	Commands [][]string
}

var allRates = []vtime.BitRate{1_000_000, 2_000_000, 5_500_000, 11_000_000, 6_000_000, 9_000_000, 12_000_000, 18_000_000,
	24_000_000, 36_000_000, 48_000_000, 54_000_000}

// NewPhy returns a station interface that is down and in no network.
func NewPhy(t testing.TB) *Phy {
	p := &Phy{t: t, Limit: 20, Mask: allRates}
	p.State = radio.Wireless{Phy: "phy3", PhyIndex: 3, Mode: radio.ModeStation, RetryShort: ref(7), RetryLong: ref(4), RTS: ref(vtime.Bytes(-1)), Fragment: ref(vtime.Bytes(-1))}
	return p
}

func ref[T any](v T) *T { return &v }

// Look implements radio.Host.
func (p *Phy) Look(program string) error {
	if slices.Contains(p.Missing, program) {
		return fmt.Errorf("%s: %w", program, fs.ErrNotExist)
	}
	return nil
}

// Snapshot is everything that an undo must put back.
func (p *Phy) Snapshot() string {
	w, _ := p.Wireless("wlan0")
	b, err := json.MarshalIndent(struct {
		*radio.Wireless
		Up      bool
		User    *vtime.DBm
		NoAck   int
		Mask    []vtime.BitRate
		Hostapd string
	}{w, p.Up, p.User, p.NoAck, p.Mask, p.Hostapd}, "", " ")
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// ReadFile implements radio.Host: nothing is there.
func (p *Phy) ReadFile(path string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// Interface implements radio.Host.
func (p *Phy) Interface(name string) (radio.Interface, error) {
	if name != "wlan0" {
		return radio.Interface{}, fmt.Errorf("interface %s: %w", name, fs.ErrNotExist)
	}
	return radio.Interface{Up: p.Up}, nil
}

// Wireless implements radio.Host.
func (p *Phy) Wireless(name string) (*radio.Wireless, error) {
	if p.NoCfg || name != "wlan0" {
		return nil, fmt.Errorf("%s is no interface of cfg80211", name)
	}
	w := p.State
	power := p.Limit
	if p.User != nil {
		power = min(power, *p.User)
	}
	w.TxPower = &power
	w.Bands = map[int][]vtime.BitRate{2: allRates, 5: allRates[4:]}
	w.Rates = map[int][]vtime.BitRate{}
	if p.Debugfs {
		w.Rates[2] = p.Mask
	}
	return &w, nil
}

// Run implements radio.Host.
func (p *Phy) Run(_ context.Context, argv []string, input string) (string, error) {
	p.Commands = append(p.Commands, argv)
	status, out := p.command(argv, input)
	if status != 0 {
		return out, &radio.Failed{Argv: argv, Status: "exit status " + strconv.Itoa(status), Output: strings.TrimSpace(out)}
	}
	return out, nil
}

// errno is what iw says of the kernel's refusal.
func errno(n int, words string) (int, string) {
	return 256 - n, fmt.Sprintf("command failed: %s (-%d)\n", words, n)
}

func (p *Phy) command(argv []string, input string) (int, string) {
	words := strings.Join(argv, " ")
	switch argv[0] {
	case "ip":
		return p.link(argv)
	case "hostapd":
		return p.hostapd(input)
	case "hostapd_cli":
		if p.Hostapd == "" {
			return 255, "Failed to connect to hostapd - wpa_ctrl_open: No such file or directory\n"
		}
		if argv[len(argv)-1] == "status" {
			return 0, "state=ENABLED\nphy=phy3\n"
		}
		p.Hostapd = ""
		p.leave()
		p.State.Mode = radio.ModeStation
		return 0, "OK\n"
	case "iw":
		if len(argv) > 3 && argv[1] == "phy#"+strconv.Itoa(p.State.PhyIndex) && argv[2] == "set" {
			return p.setPhy(argv[3], argv[4:])
		}
		if len(argv) > 3 && argv[1] == "dev" && argv[2] == "wlan0" {
			return p.dev(argv[3], argv[4:])
		}
	}
	return 1, "what is " + words + "?\n"
}

func (p *Phy) link(argv []string) (int, string) {
	if len(argv) != 6 || argv[4] != "wlan0" {
		return 1, "Cannot find device\n"
	}
	p.Up = argv[5] == "up"
	if !p.Up {
		p.leave()
	}
	return 0, ""
}

func (p *Phy) leave() {
	p.State.Network, p.State.BSSID, p.State.Frequency, p.State.Width, p.Basic, p.Mcast, p.State.Forwards = "", "", 0, "", nil, 0, nil
}

func (p *Phy) lies(s string) bool { return slices.Contains(p.Lies, s) }

// setPhy is iw phy set.
func (p *Phy) setPhy(what string, a []string) (int, string) {
	size := func(dst **vtime.Bytes, low int) (int, string) {
		n, err := strconv.Atoi(a[0])
		if a[0] == "off" {
			n, err = -1, nil
		}
		if err != nil || n != -1 && n < low {
			return errno(22, "Invalid argument")
		}
		if !p.lies(what) {
			*dst = ref(vtime.Bytes(n &^ (low >> 8))) // the threshold of fragments loses its lowest bit
			if n == -1 {
				*dst = ref(vtime.Bytes(-1))
			}
		}
		return 0, ""
	}
	switch what {
	case "rts":
		return size(&p.State.RTS, 0)
	case "frag":
		return size(&p.State.Fragment, 256)
	case "retry":
		for i := 0; i+1 < len(a); i += 2 {
			n, err := strconv.Atoi(a[i+1])
			if err != nil || n < 1 || n > 31 {
				return errno(22, "Invalid argument")
			}
			switch {
			case p.lies(what):
			case a[i] == "short":
				p.State.RetryShort = &n
			case a[i] == "long":
				p.State.RetryLong = &n
			}
		}
		return 0, ""
	case "txpower":
		switch {
		case a[0] == "auto":
			p.User = nil
		case !p.lies(what):
			mbm, err := strconv.Atoi(a[1])
			if err != nil || mbm < 0 || mbm%100 != 0 {
				return errno(95, "Operation not supported")
			}
			p.User = ref(vtime.DBm(mbm / 100))
		}
		return 0, ""
	}
	return 1, "what is " + what + "?\n"
}

// dev is iw dev.
func (p *Phy) dev(what string, a []string) (int, string) {
	switch what + " " + strings.Join(a[:min(1, len(a))], "") {
	case "set type":
		if p.Up {
			return errno(16, "Device or resource busy")
		}
		m, ok := map[string]radio.Mode{"ibss": radio.ModeAdhoc, "managed": radio.ModeStation, "mesh": radio.ModeMesh, "monitor": "monitor"}[a[1]]
		if !ok {
			return 1, "Invalid interface type\n"
		}
		if !p.lies("type") {
			p.State.Mode, p.NoAck = m, 0
		}
		return 0, ""
	case "set bitrates":
		return p.bitrates(a[1:])
	case "set noack_map":
		n, err := strconv.ParseInt(a[1], 0, 32)
		if err != nil {
			return 1, "bad map\n"
		}
		p.NoAck = int(n)
		return 0, ""
	case "ibss join":
		return p.join(radio.ModeAdhoc, a[1], a[2], a[3:])
	case "mesh join":
		return p.join(radio.ModeMesh, a[1], a[3], a[4:])
	case "ibss leave", "mesh leave", "disconnect ":
		if p.State.Frequency == 0 {
			return errno(67, "Link has been severed")
		}
		p.leave()
		return 0, ""
	}
	if what == "connect" && len(a) >= 2 {
		return p.join(radio.ModeStation, a[0], a[1], a[2:])
	}
	return 1, "what is " + what + "?\n"
}

func (p *Phy) bitrates(a []string) (int, string) {
	if !p.Up {
		return errno(100, "Network is down")
	}
	if len(a) == 0 {
		p.Mask = allRates
		return 0, ""
	}
	var mask []vtime.BitRate
	for _, w := range a[1:] {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil { // ht-mcs-2.4 without an index is refused
			return errno(22, "Invalid argument")
		}
		mask = append(mask, vtime.BitRate(f*1e6))
	}
	basic := p.Basic
	if p.State.Frequency != 0 && !slices.ContainsFunc(mask, func(r vtime.BitRate) bool { return slices.Contains(basic, r) }) {
		return errno(22, "Invalid argument")
	}
	if !p.lies("bitrates") {
		p.Mask = mask
	}
	return 0, ""
}

func (p *Phy) join(m radio.Mode, network, mhz string, rest []string) (int, string) {
	f, err := strconv.Atoi(mhz)
	switch {
	case err != nil || f == 2484:
		return errno(22, "Invalid argument")
	case !p.Up:
		return errno(100, "Network is down")
	case p.State.Mode != m:
		return errno(95, "Operation not supported")
	case p.State.Frequency != 0:
		return errno(114, "Operation already in progress")
	}
	p.State.Network, p.State.Frequency, p.State.Width, p.Basic = network, f, "NOHT", allRates[:4]
	if m != radio.ModeMesh {
		p.State.BSSID = "32:01:02:03:04:05"
	} else {
		p.State.Forwards = ref(true)
	}
	for i, w := range rest {
		switch {
		case w == "basic-rates" || w == "mcast-rate":
			r, _ := strconv.ParseFloat(rest[i+1], 64)
			if w == "basic-rates" {
				p.Basic = []vtime.BitRate{vtime.BitRate(r * 1e6)}
			} else {
				p.Mcast = vtime.BitRate(r * 1e6)
			}
		case strings.HasPrefix(w, "HT"):
			p.State.Width = w
		case w == "mesh_fwding=0" && !p.lies("mesh_fwding"):
			p.State.Forwards = ref(false)
		case strings.Count(w, ":") == 5 && !p.lies("bssid"):
			p.State.BSSID = w
		}
	}
	if m == radio.ModeMesh {
		p.State.Network = "" // not told; being in one shows by the frequency
		p.State.BSSID = ""
	}
	return 0, ""
}

func (p *Phy) hostapd(input string) (int, string) {
	if p.Hostapd != "" || !strings.Contains(input, "interface=wlan0\n") {
		return 1, "Failed to initialize interface\n"
	}
	p.Hostapd, p.Up = input, true
	p.State.Mode, p.State.BSSID, p.NoAck = radio.ModeAP, "02:00:00:00:00:00", 0
	for _, l := range strings.Split(input, "\n") {
		k, v, _ := strings.Cut(l, "=")
		switch k {
		case "ssid":
			p.State.Network = v
		case "channel":
			n, _ := strconv.Atoi(v)
			p.State.Frequency, _ = radio.Frequency(n)
		}
	}
	return 0, "wlan0: AP-ENABLED\n"
}
