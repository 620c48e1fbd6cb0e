package radiotest

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// tool is one run of a program. The texts are those of wireless-tools 30 and of
// madwifi's tools/wlanconfig.c; what is refused follows
// net80211/ieee80211_wireless.c.
type tool struct {
	*Device
	out, err io.Writer
}

// run is one run of the program name.
func (t tool) run(name string, args []string) int {
	t.Calls = append(t.Calls, append([]string{name}, args...))
	if len(args) == 0 {
		fmt.Fprintln(t.err, name+": what of?")
		return 255
	}
	return map[string]func([]string) int{"iwconfig": t.iwconfig, "iwpriv": t.iwpriv, "wlanconfig": t.wlanconfig, "ip": t.ip}[name](args)
}

// Exit statuses of the programs.
const (
	statusSet    = 250 // iwconfig: a request was refused
	statusDevice = 237 // iwconfig: no such device
	statusPriv   = 255 // iwpriv
)

func (t tool) iwconfig(args []string) int {
	v := t.vap(args[0])
	if len(args) == 1 {
		if v == nil {
			fmt.Fprintf(t.err, "%-8.16s  No such device\n\n", args[0])
			return statusDevice
		}
		fmt.Fprint(t.out, t.show(v))
		return 0
	}
	request, ok := map[string]struct {
		name string
		code int
		do   func(*VAP, []string) string
	}{
		"essid": {"Set ESSID", 0x8B1A, t.essid}, "channel": {"Set Frequency", 0x8B04, t.channel}, "ap": {"Set AP Address", 0x8B14, t.ap},
		"rate": {"Set Bit Rate", 0x8B20, t.rate}, "txpower": {"Set Tx Power", 0x8B26, t.txpower}, "retry": {"Set Retry Limit", 0x8B28, t.retry},
		"rts": {"Set RTS Threshold", 0x8B22, t.rts}, "frag": {"Set Fragmentation Threshold", 0x8B24, t.frag}, "mode": {"Set Mode", 0x8B06, t.mode},
	}[args[1]]
	if !ok {
		fmt.Fprintf(t.err, "iwconfig: unknown command %q\n", args[1])
		return 255
	}
	why := "No such device"
	if v != nil {
		if len(args) < 3 {
			fmt.Fprintf(t.err, "Error for wireless request %q (%X) :\n    too few arguments.\n", request.name, request.code)
			return 255
		}
		why = request.do(v, args[2:])
	}
	if why != "" {
		fmt.Fprintf(t.err, "Error for wireless request %q (%X) :\n    SET failed on device %s ; %s.\n", request.name, request.code, args[0], why)
		return statusSet
	}
	return 0
}

const (
	invalid     = "Invalid argument"
	unsupported = "Operation not supported"
)

func (t tool) essid(v *VAP, a []string) string {
	name := a[0]
	switch {
	case name == "--" && len(a) > 1:
		name = a[1]
	case strings.EqualFold(name, "any") || strings.EqualFold(name, "off"):
		name = ""
	}
	if !t.lies("essid") {
		v.ESSID = name[:min(len(name), 32)]
	}
	return ""
}

func (t tool) channel(v *VAP, a []string) string {
	n, ok := number(a[0])
	if a[0] == "auto" {
		n, ok = 0, true
	}
	// findchannel: 11 channels of 2.4 GHz, and the lowest four of 5 GHz
	if !ok || n < 0 || n > 11 && !slices.Contains([]int{36, 40, 44, 48}, n) {
		return invalid
	}
	if v.Mode == "ap" && t.PhyMode == "11b" && n > 14 {
		return invalid
	}
	if !t.lies("channel") {
		v.Channel = n
	}
	return ""
}

func (t tool) ap(v *VAP, a []string) string {
	if v.Mode == "ap" {
		return unsupported
	}
	if !t.lies("ap") {
		v.BSSID = a[0]
		if a[0] == "off" || a[0] == "any" {
			v.BSSID = ""
		}
	}
	return ""
}

func (t tool) rate(v *VAP, a []string) string {
	if a[0] == "auto" {
		v.Rate = 0
		return ""
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(a[0], "M"), 64)
	if err != nil || !strings.HasSuffix(a[0], "M") {
		return invalid
	}
	half := int(f * 2)
	cck, ofdm := slices.Contains([]int{2, 4, 11, 22}, half), slices.Contains([]int{12, 18, 24, 36, 48, 72, 96, 108}, half)
	if t.PhyMode == "11b" && !cck || t.PhyMode == "11a" && !ofdm || !cck && !ofdm {
		return invalid
	}
	if !t.lies("rate") {
		v.Rate = half
	}
	return ""
}

func (t tool) txpower(v *VAP, a []string) string {
	n, ok := number(a[0])
	if a[0] == "auto" {
		n, ok = -1, true
	}
	if !ok || n > t.TxLimit {
		return invalid
	}
	if !t.lies("txpower") {
		t.TxPower = n
	}
	return ""
}

func (t tool) retry(v *VAP, a []string) string {
	if a[0] == "off" {
		v.Retry = -1
		return ""
	}
	n, ok := number(a[0])
	if !t.SWRetry {
		return unsupported
	}
	if !ok {
		return invalid
	}
	if !t.lies("retry") {
		v.Retry = n
	}
	return ""
}

func (t tool) rts(v *VAP, a []string) string {
	n, ok := number(a[0])
	if a[0] == "off" {
		n, ok = 2346, true
	}
	if !ok || n < 1 || n > 2346 {
		return invalid
	}
	if !t.lies("rts") {
		v.RTS = n
	}
	return ""
}

func (t tool) frag(v *VAP, a []string) string {
	n, ok := number(a[0])
	if a[0] == "off" {
		n, ok = 2346, true
	}
	if !ok || n < 256 || n > 2346 {
		return invalid
	}
	if !t.lies("frag") {
		v.Frag = n &^ 1
	}
	return ""
}

func (t tool) mode(*VAP, []string) string { return invalid }

// show writes what iwconfig shows.
func (t tool) show(v *VAP) string {
	name := "IEEE 802.11g"
	if t.PhyMode == "11b" {
		name = "IEEE 802.11b"
	} else if v.Channel > 14 {
		name = "IEEE 802.11a"
	}
	mode := map[string]string{"sta": "Managed", "ap": "Master", "adhoc": "Ad-Hoc", "ahdemo": "Ad-Hoc", "monitor": "Monitor", "wds": "Repeater"}[v.Mode]
	ghz := "0 kHz"
	switch {
	case v.Channel > 14:
		ghz = fmt.Sprintf("%g GHz", float64(5000+5*v.Channel)/1000)
	case v.Channel > 0:
		ghz = fmt.Sprintf("%g GHz", float64(2407+5*v.Channel)/1000)
	}
	cell := "Access Point: "
	if mode == "Ad-Hoc" {
		cell = "Cell: "
	}
	bssid := "Not-Associated"
	if v.BSSID != "" {
		bssid = strings.ToUpper(v.BSSID)
	}
	rate := "Bit Rate:0 kb/s"
	if v.Rate != 0 {
		rate = fmt.Sprintf("Bit Rate=%d Mb/s", v.Rate/2)
	}
	power := fmt.Sprintf("Tx-Power:%d dBm", t.TxLimit)
	if t.TxPower >= 0 {
		power = fmt.Sprintf("Tx-Power=%d dBm", t.TxPower)
	}
	limit := func(n int) string {
		if n == 2346 {
			return ":off"
		}
		return fmt.Sprintf("=%d B", n)
	}
	retry := ":off"
	if v.Retry >= 0 {
		retry = fmt.Sprintf(" limit:%d", v.Retry)
	}
	return fmt.Sprintf(`%-8.16s  %s  ESSID:"%s"  Nickname:""
          Mode:%s  Frequency:%s  %s%s   
          %s   %s   Sensitivity=1/1  
          Retry%s   RTS thr%s   Fragment thr%s
          Encryption key:off
          Power Management:off
          Link Quality=0/70  Signal level=-96 dBm  Noise level=-96 dBm
          Rx invalid nwid:0  Rx invalid crypt:0  Rx invalid frag:0
          Tx excessive retries:0  Invalid misc:0   Missed beacon:0

`, v.Name, name, v.ESSID, mode, ghz, cell, bssid, rate, power, retry, limit(v.RTS), limit(v.Frag))
}

func (t tool) wlanconfig(args []string) int {
	ioctl := func(why string) int {
		fmt.Fprintln(t.err, "wlanconfig: ioctl: "+why)
		return 1
	}
	v := t.vap(args[0])
	switch {
	case len(args) == 2 && args[1] == "destroy":
		if v == nil {
			return ioctl("No such device")
		}
		t.VAPs = slices.DeleteFunc(t.VAPs, func(x *VAP) bool { return x == v })
		return 0
	case len(args) == 6 && args[1] == "create" && args[2] == "wlandev" && args[4] == "wlanmode":
		if args[3] != t.Base {
			return ioctl("No such device")
		}
		if v != nil {
			return ioctl("File exists")
		}
		if !slices.Contains([]string{"sta", "ap", "adhoc", "ahdemo", "monitor", "wds"}, args[5]) {
			fmt.Fprintln(t.err, "wlanconfig: unknown operating mode "+args[5])
			return 1
		}
		mode := args[5]
		if t.lies("wlanmode") {
			mode = "sta"
		}
		t.VAPs = append(t.VAPs, NewVAP(args[0], mode))
		fmt.Fprintln(t.out, args[0])
		return 0
	}
	fmt.Fprintln(t.err, "usage: wlanconfig athX create [nounit] wlandev wifiY")
	return 255
}

func (t tool) ip(args []string) int {
	words := strings.Join(args, " ")
	v := t.vap(args[len(args)-1])
	switch {
	case strings.HasPrefix(words, "link set dev ") && len(args) == 5:
		if v = t.vap(args[3]); v != nil {
			v.Up = args[4] == "up"
			return 0
		}
		fmt.Fprintf(t.err, "Cannot find device %q\n", args[3])
		return 1
	case strings.HasPrefix(words, "address add ") && len(args) == 5 && v != nil:
		p, err := netip.ParsePrefix(args[2])
		if err != nil {
			break
		}
		if slices.Contains(v.Addresses, p) {
			fmt.Fprintln(t.err, "RTNETLINK answers: File exists")
			return 2
		}
		v.Addresses = append(v.Addresses, p)
		return 0
	}
	fmt.Fprintln(t.err, "ip: what is "+words+"?")
	return 1
}
