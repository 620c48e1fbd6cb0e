package radio_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/netem/vtime"
)

func ptr[T any](v T) *T { return &v }

// hopLab is what the published testbed set: 802.11b in ad-hoc mode, the
// background queue with the longest txop and without acknowledgements.
func hopLab() radio.Config {
	c := radio.Config{
		Driver: radio.Madwifi, Interface: "ath0",
		Mode: radio.ModeAdhoc, Network: "hop", BSSID: "02:CA:FE:00:00:01", Channel: 6, TxPower: ptr(vtime.DBm(15)),
		Standard: "802.11b", Rate: 11 * vtime.MbitPerSecond, BasicRate: 2 * vtime.MbitPerSecond, Preamble: "long",
		RTS: ptr(vtime.Bytes(500)), Fragment: ptr(vtime.Bytes(512)),
	}
	c.Queues[0] = radio.Queue{AIFS: ptr(7), CWMin: ptr(31), CWMax: ptr(1023), TXOP: ptr(8160 * vtime.Microsecond), NoAck: ptr(true)}
	c.Queues[3] = radio.Queue{NoAck: ptr(false)}
	return c
}

func with(c radio.Config, change func(*radio.Config)) radio.Config {
	change(&c)
	return c
}

func TestMadwifiConforms(t *testing.T) {
	ap := with(hopLab(), func(c *radio.Config) { c.Mode, c.BSSID = radio.ModeAP, "" })
	radiotest.Conform(t, radiotest.Subject{
		Driver: radio.Madwifi,
		Configs: map[string]radio.Config{
			"ad hoc":        hopLab(),
			"access point":  ap,
			"station":       with(hopLab(), func(c *radio.Config) { c.Mode = radio.ModeStation }),
			"as it is":      with(hopLab(), func(c *radio.Config) { c.Mode = "" }),
			"rate alone":    {Driver: radio.Madwifi, Interface: "ath0", Rate: 5_500_000},
			"all off":       {Driver: radio.Madwifi, Interface: "ath0", RTS: ptr(vtime.Bytes(-1)), Fragment: ptr(vtime.Bytes(-1))},
			"short, 5 GHz":  {Driver: radio.Madwifi, Interface: "ath0", Preamble: "short", Channel: 36, Standard: "802.11a", Rate: 54 * vtime.MbitPerSecond},
			"keyword essid": with(hopLab(), func(c *radio.Config) { c.Network = "any" }),
			"nothing":       {Driver: radio.Madwifi, Interface: "ath0"},
		},
		Unsupported: map[string]radio.Config{
			"mesh":          with(hopLab(), func(c *radio.Config) { c.Mode = radio.ModeMesh }),
			"queue limit":   with(hopLab(), func(c *radio.Config) { c.Queues[0].Limit = ptr(50) }),
			"half a dBm":    with(hopLab(), func(c *radio.Config) { c.TxPower = ptr(vtime.DBm(14.5)) }),
			"long txop":     with(hopLab(), func(c *radio.Config) { c.Queues[0].TXOP = ptr(8224 * vtime.Microsecond) }),
			"odd txop":      with(hopLab(), func(c *radio.Config) { c.Queues[0].TXOP = ptr(8000 * vtime.Microsecond / 3) }),
			"odd fragment":  with(hopLab(), func(c *radio.Config) { c.Fragment = ptr(vtime.Bytes(513)) }),
			"window":        with(hopLab(), func(c *radio.Config) { c.Queues[0].CWMin = ptr(30) }),
			"windows":       with(hopLab(), func(c *radio.Config) { c.Queues[0].CWMin = ptr(2047) }),
			"bssid of ap":   with(hopLab(), func(c *radio.Config) { c.Mode = radio.ModeAP }),
			"group bssid":   with(hopLab(), func(c *radio.Config) { c.BSSID = "03:00:00:00:00:01" }),
			"other band":    with(hopLab(), func(c *radio.Config) { c.Channel = 36 }),
			"rate of other": with(hopLab(), func(c *radio.Config) { c.Rate = 54 * vtime.MbitPerSecond }),
			"no rate":       with(hopLab(), func(c *radio.Config) { c.Rate = 7 * vtime.MbitPerSecond }),
			"essid":         with(hopLab(), func(c *radio.Config) { c.Network = "a\nb" }),
			"large rts":     with(hopLab(), func(c *radio.Config) { c.RTS = ptr(vtime.Bytes(2346)) }),
		},
		New: func(t testing.TB) radiotest.Host {
			d := radiotest.NewDevice()
			v := d.VAPs[0]
			v.Up, v.ESSID, v.Channel, v.BSSID, v.Rate = true, "office", 11, "00:0f:b5:94:38:98", 108
			v.RTS, v.Frag, d.TxPower = 2000, 1000, 12
			v.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.7/24")}
			h := radiotest.NewMadwifiHost(t, d)
			h.InProcess = true
			return h
		},
		Bare: func(t testing.TB) radiotest.Host {
			h := radiotest.NewMadwifiHost(t, radiotest.NewDevice())
			h.Remove("wlanconfig")
			return h
		},
	})
}

// An interface that sniffed sniffs again afterwards. One in ahdemo looks like one
// in ad-hoc mode, and is made anew.
func TestMadwifiPutsBackWhatItWas(t *testing.T) {
	for _, mode := range []string{"monitor", "wds", "adhoc"} {
		t.Run(mode, func(t *testing.T) {
			radiotest.Conform(t, radiotest.Subject{
				Driver: radio.Madwifi,
				Configs: map[string]radio.Config{
					"station": with(hopLab(), func(c *radio.Config) { c.Mode = radio.ModeStation }),
					"ahdemo":  with(hopLab(), func(c *radio.Config) { c.Mode = radio.ModeAhdemo }),
				},
				New: func(t testing.TB) radiotest.Host {
					d := radiotest.NewDevice()
					d.VAPs[0] = radiotest.NewVAP("ath0", mode)
					h := radiotest.NewMadwifiHost(t, d)
					h.InProcess = true
					return h
				},
			})
		})
	}
}

// The commands of the published settings, as --dry-run shows them.
func TestMadwifiPlan(t *testing.T) {
	steps, err := radio.Plan(hopLab())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.String())
	}
	want := []string{
		"wlanconfig ath0 destroy",
		"wlanconfig ath0 create wlandev wifi0 wlanmode adhoc",
		"iwpriv ath0 mode 11b",
		"iwpriv ath0 shpreamble 0",
		"iwconfig ath0 channel 6",
		"iwconfig ath0 ap 02:ca:fe:00:00:01",
		"iwconfig ath0 essid -- hop",
		"iwconfig ath0 txpower 15",
		"iwconfig ath0 rate 11M",
		"iwpriv ath0 mcast_rate 2000",
		"iwconfig ath0 rts 500",
		"iwconfig ath0 frag 512",
		"iwpriv ath0 wmm 1",
		"iwpriv ath0 aifs 1 0 7",
		"iwpriv ath0 cwmin 1 0 5",
		"iwpriv ath0 cwmax 1 0 10",
		"iwpriv ath0 txoplimit 1 0 8160",
		"iwpriv ath0 noackpolicy 1 0 1",
		"iwpriv ath0 noackpolicy 3 0 0",
		"ip link set dev ath0 up",
	}
	if !slices.Equal(got, want) {
		t.Errorf("plan:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// configure runs the whole of it on a fresh driver and returns the records.
func configure(t *testing.T, h radio.Host, c radio.Config) ([]radio.Setting, []undo.Record, error) {
	t.Helper()
	var records []undo.Record
	d := radio.Unsettled(c.Driver)
	push := func(r undo.Record) error { records = append(records, r); return nil }
	if err := d.Probe(t.Context(), h, c); err != nil {
		return nil, nil, err
	}
	if err := d.Apply(t.Context(), h, c, push); err != nil {
		return nil, records, err
	}
	s, err := d.Readback(t.Context(), h, c)
	return s, records, err
}

// Each setting that the driver accepts and does not make is an error that names
// it.
func TestMadwifiReadbackFindsLies(t *testing.T) {
	c := hopLab()
	c.Retries = ptr(3)
	for lie, setting := range map[string]string{
		"wlanmode": "mode", "essid": "network", "ap": "bssid", "channel": "channel", "rate": "rate", "txpower": "tx-power",
		"retry": "retries", "rts": "rts", "frag": "fragment", "mode": "standard", "mcast_rate": "basic-rate",
		"aifs": "bk.aifs", "cwmin": "bk.cwmin", "txoplimit": "bk.txop", "noackpolicy": "bk.ack",
	} {
		t.Run(lie, func(t *testing.T) {
			d := radiotest.NewDevice()
			d.SWRetry, d.Lies = true, []string{lie}
			d.Own[1] = radiotest.WME{AIFS: 2, LogCWMin: 3, LogCWMax: 10}
			h := radiotest.NewMadwifiHost(t, d)
			h.InProcess = true // "none", below, runs the programs
			_, _, err := configure(t, h, c)
			e, ok := errors.AsType[*radio.Error](err)
			if !ok || e.Kind != radio.NotTaken || e.Setting != setting || e.Got == e.Wanted || e.Got == "" {
				t.Errorf("got %v, want NotTaken of %s", err, setting)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		d := radiotest.NewDevice()
		d.SWRetry = true
		s, _, err := configure(t, radiotest.NewMadwifiHost(t, d), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range s {
			if x.State != radio.Verified && x.Name != "basic-rate" {
				t.Errorf("%+v is not verified", x)
			}
		}
	})
}

// What the driver refuses is an error with its words and a remedy.
func TestMadwifiRefusals(t *testing.T) {
	for name, x := range map[string]struct {
		c       radio.Config
		setting string
		says    string
	}{
		"retries":    {radio.Config{Retries: ptr(7)}, "retries", "Operation not supported"},
		"power":      {radio.Config{TxPower: ptr(vtime.DBm(30))}, "tx-power", "Invalid argument"},
		"channel":    {radio.Config{Channel: 13}, "channel", "Invalid argument"},
		"mcast rate": {radio.Config{Interface: "ath7", Mode: radio.ModeAdhoc, Device: "wifi0", Channel: 14}, "channel", "Invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			c := x.c
			c.Driver = radio.Madwifi
			if c.Interface == "" {
				c.Interface = "ath0"
			}
			_, _, err := configure(t, radiotest.NewMadwifiHost(t, radiotest.NewDevice()), c)
			e, ok := errors.AsType[*radio.Error](err)
			if !ok || e.Kind != radio.Rejected || e.Setting != x.setting || !strings.Contains(e.Got, x.says) || e.Remedy == "" {
				t.Errorf("got %v, want Rejected of %s with %q and a remedy", err, x.setting, x.says)
			}
		})
	}
}

// A version that keeps txops in eight bits makes 0 of 8192 us.
func TestMadwifiShortTXOP(t *testing.T) {
	c := radio.Config{Driver: radio.Madwifi, Interface: "ath0"}
	c.Queues[0].TXOP = ptr(8192 * vtime.Microsecond)
	d := radiotest.NewDevice()
	d.ShortTXOP = true
	_, _, err := configure(t, radiotest.NewMadwifiHost(t, d), c)
	if e, ok := errors.AsType[*radio.Error](err); !ok || e.Kind != radio.NotTaken || e.Got != "0ns" && e.Got != "0us" {
		t.Errorf("got %v, want NotTaken, got 0", err)
	}
	c.Queues[0].TXOP = ptr(8160 * vtime.Microsecond)
	if _, _, err := configure(t, radiotest.NewMadwifiHost(t, d), c); err != nil {
		t.Error(err)
	}
}

func TestMadwifiOtherInterfaces(t *testing.T) {
	c := hopLab()
	c.Interface = "eth0"
	_, _, err := configure(t, radiotest.NewMadwifiHost(t, radiotest.NewDevice()), c)
	if e, ok := errors.AsType[*radio.Error](err); !ok || e.Kind != radio.Unavailable || !strings.Contains(e.Error(), "no interface of MadWifi") {
		t.Errorf("got %v, want Unavailable", err)
	}
	// One that is not there is made, and undone it is gone.
	c.Interface = "ath5"
	h := radiotest.NewMadwifiHost(t, radiotest.NewDevice())
	_, records, err := configure(t, h, c)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.Device().VAPs); n != 2 {
		t.Errorf("%d interfaces, want 2", n)
	}
	if last := records[0]; !strings.Contains(last.What, "wlanconfig ath5 destroy") {
		t.Errorf("the oldest record is %q, want the end of ath5", last.What)
	}
}
