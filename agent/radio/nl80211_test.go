package radio_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
	"github.com/hopbed/hopbed/netem/vtime"
)

// meshLab is an IBSS of a lab with cfg80211 drivers.
func meshLab() radio.Config {
	c := radio.Config{
		Driver: radio.NL80211, Interface: "wlan0",
		Mode: radio.ModeAdhoc, Network: "hop", BSSID: "02:CA:FE:00:00:01", Channel: 6, TxPower: ptr(vtime.DBm(15)),
		Standard: "802.11b", Rate: 11 * vtime.MbitPerSecond, BasicRate: 2 * vtime.MbitPerSecond, Preamble: "long",
		Retries: ptr(7), RTS: ptr(vtime.Bytes(500)), Fragment: ptr(vtime.Bytes(512)),
	}
	c.Queues[0].NoAck, c.Queues[3].NoAck = ptr(true), ptr(false)
	return c
}

// apLab is an access point with parameters of a queue.
func apLab() radio.Config {
	c := with(meshLab(), func(c *radio.Config) { c.Mode, c.BSSID = radio.ModeAP, "" })
	c.Queues[0] = radio.Queue{AIFS: ptr(7), CWMin: ptr(31), CWMax: ptr(1023), TXOP: ptr(8096 * vtime.Microsecond), NoAck: ptr(true)}
	return c
}

func nl80211Configs() map[string]radio.Config {
	return map[string]radio.Config{
		"ad hoc":       meshLab(),
		"mesh":         with(meshLab(), func(c *radio.Config) { c.Mode, c.BSSID = radio.ModeMesh, "" }),
		"access point": apLab(),
		"as it is": with(meshLab(), func(c *radio.Config) {
			c.Mode, c.Network, c.BSSID, c.Channel, c.BasicRate = "", "", "", 0, 0
		}),
		"all off": {Driver: radio.NL80211, Interface: "wlan0", RTS: ptr(vtime.Bytes(-1)), Fragment: ptr(vtime.Bytes(-1)), Retries: ptr(0)},
		"54 Mb/s": with(meshLab(), func(c *radio.Config) {
			c.Standard, c.Rate, c.BasicRate = "802.11g", 54*vtime.MbitPerSecond, 24*vtime.MbitPerSecond
		}),
		"nothing": {Driver: radio.NL80211, Interface: "wlan0"},
	}
}

func nl80211Unsupported() map[string]radio.Config {
	m := meshLab()
	return map[string]radio.Config{
		"ahdemo":          with(m, func(c *radio.Config) { c.Mode = radio.ModeAhdemo }),
		"txop of an ibss": with(m, func(c *radio.Config) { c.Queues[0].TXOP = ptr(8160 * vtime.Microsecond) }),
		"aifs of a mesh":  with(m, func(c *radio.Config) { c.Mode, c.BSSID, c.Queues[0].AIFS = radio.ModeMesh, "", ptr(2) }),
		"inexact burst":   with(apLab(), func(c *radio.Config) { c.Queues[0].TXOP = ptr(8160 * vtime.Microsecond) }),
		"part of a queue": with(apLab(), func(c *radio.Config) { c.Queues[0].CWMin = nil }),
		"queue limit":     with(m, func(c *radio.Config) { c.Queues[0].Limit = ptr(50) }),
		"short preamble":  with(m, func(c *radio.Config) { c.Preamble = "short" }),
		"31 retries":      with(m, func(c *radio.Config) { c.Retries = ptr(31) }),
		"half a dBm":      with(m, func(c *radio.Config) { c.TxPower = ptr(vtime.DBm(0.5)) }),
		"no channel":      with(m, func(c *radio.Config) { c.Channel = 0 }),
		"no network":      with(m, func(c *radio.Config) { c.Network = "" }),
		"no mode":         with(m, func(c *radio.Config) { c.Mode = "" }),
		"high basic rate": with(m, func(c *radio.Config) { c.Rate = vtime.MbitPerSecond }),
	}
}

func TestNL80211Conforms(t *testing.T) {
	radiotest.Conform(t, radiotest.Subject{
		Driver: radio.NL80211, Configs: nl80211Configs(), Unsupported: nl80211Unsupported(),
		New: func(t testing.TB) radiotest.Host {
			p := radiotest.NewPhy(t)
			p.State.RTS, p.State.Fragment = ptr(vtime.Bytes(2000)), ptr(vtime.Bytes(1000))
			return p
		},
		Bare: func(t testing.TB) radiotest.Host {
			p := radiotest.NewPhy(t)
			p.Missing = []string{"iw", "hostapd"}
			return p
		},
	})
}

// An interface that was in an IBSS of the lab's is in it again afterwards; one
// that sniffed sniffs.
func TestNL80211PutsBackWhatItWas(t *testing.T) {
	for name, state := range map[string]radio.Wireless{
		"in an ibss": {Mode: radio.ModeAdhoc, Network: "lab", BSSID: "02:aa:00:00:00:01", Frequency: 2412, Width: "HT20"},
		"a monitor":  {Mode: "monitor"},
	} {
		t.Run(name, func(t *testing.T) {
			radiotest.Conform(t, radiotest.Subject{
				Driver: radio.NL80211, Configs: map[string]radio.Config{"ad hoc": meshLab(), "mesh": nl80211Configs()["mesh"]},
				New: func(t testing.TB) radiotest.Host {
					p := radiotest.NewPhy(t)
					p.Up = true
					s := &p.State
					s.Mode, s.Network, s.BSSID, s.Frequency, s.Width = state.Mode, state.Network, state.BSSID, state.Frequency, state.Width
					return p
				},
			})
		})
	}
}

func TestNL80211Plan(t *testing.T) {
	plans := map[string]struct {
		c    radio.Config
		want []string
	}{
		"ad hoc": {meshLab(), []string{
			"ip link set dev wlan0 down",
			"iw dev wlan0 set type ibss",
			"ip link set dev wlan0 up",
			`iw phy#"$(cat /sys/class/net/wlan0/phy80211/index)" set retry short 8 long 8`,
			`iw phy#"$(cat /sys/class/net/wlan0/phy80211/index)" set rts 500`,
			`iw phy#"$(cat /sys/class/net/wlan0/phy80211/index)" set txpower fixed 1500`,
			`iw phy#"$(cat /sys/class/net/wlan0/phy80211/index)" set frag 512`,
			"iw dev wlan0 set bitrates legacy-2.4 11",
			"iw dev wlan0 ibss join hop 2437 NOHT fixed-freq 02:ca:fe:00:00:01 basic-rates 2 mcast-rate 2",
			"iw dev wlan0 set noack_map 0x0006",
		}},
		"mesh": {with(meshLab(), func(c *radio.Config) {
			*c = radio.Config{Driver: c.Driver, Interface: c.Interface, Device: "phy1", Mode: radio.ModeMesh, Network: "a b", Channel: 36, Retries: ptr(0)}
		}), []string{
			"ip link set dev wlan0 down",
			"iw dev wlan0 set type mesh",
			"ip link set dev wlan0 up",
			"iw phy phy1 set retry short 1 long 1",
			"iw dev wlan0 mesh join 'a b' freq 5180 NOHT mesh_fwding=0",
		}},
	}
	for name, p := range plans {
		t.Run(name, func(t *testing.T) {
			steps, err := radio.Plan(p.c)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range steps {
				got = append(got, s.String())
			}
			if !slices.Equal(got, p.want) {
				t.Errorf("plan:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(p.want, "\n"))
			}
		})
	}
}

func TestNL80211ReadbackFindsLies(t *testing.T) {
	for lie, setting := range map[string]string{
		"txpower": "tx-power", "rts": "rts", "frag": "fragment", "retry": "retries", "bitrates": "standard", "bssid": "bssid",
	} {
		t.Run(lie, func(t *testing.T) {
			p := radiotest.NewPhy(t)
			p.Debugfs, p.Lies = true, []string{lie}
			_, _, err := configure(t, p, meshLab())
			e, ok := errors.AsType[*radio.Error](err)
			if !ok || e.Kind != radio.NotTaken || e.Setting != setting || e.Got == e.Wanted || e.Got == "" {
				t.Errorf("got %v, want NotTaken of %s", err, setting)
			}
		})
	}
	t.Run("mesh_fwding", func(t *testing.T) {
		p := radiotest.NewPhy(t)
		p.Lies = []string{"mesh_fwding"}
		_, _, err := configure(t, p, nl80211Configs()["mesh"])
		if e, ok := errors.AsType[*radio.Error](err); !ok || e.Kind != radio.NotTaken || e.Setting != "mode" {
			t.Errorf("got %v, want NotTaken of mode", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		p := radiotest.NewPhy(t)
		p.Debugfs = true
		s, _, err := configure(t, p, meshLab())
		if err != nil {
			t.Fatal(err)
		}
		var un []string
		for _, x := range s {
			if x.State != radio.Verified {
				un = append(un, x.Name)
			}
		}
		if want := []string{"basic-rate", "preamble", "bk.ack", "vo.ack"}; !slices.Equal(un, want) {
			t.Errorf("unverified: %v, want %v", un, want)
		}
	})
	// A power above what the regulatory domain permits is cut down in silence.
	t.Run("regulatory", func(t *testing.T) {
		_, _, err := configure(t, radiotest.NewPhy(t), with(meshLab(), func(c *radio.Config) { c.TxPower = ptr(vtime.DBm(30)) }))
		if e, ok := errors.AsType[*radio.Error](err); !ok || e.Kind != radio.NotTaken || e.Got != "20dBm" {
			t.Errorf("got %v, want NotTaken, got 20dBm", err)
		}
	})
}

func TestNL80211Refusals(t *testing.T) {
	unavailable := func(name string, p *radiotest.Phy, c radio.Config, says string) {
		t.Run(name, func(t *testing.T) {
			before := p.Snapshot()
			_, _, err := configure(t, p, c)
			e, ok := errors.AsType[*radio.Error](err)
			if !ok || e.Kind != radio.Unavailable || !strings.Contains(e.Error(), says) || e.Remedy == "" {
				t.Errorf("got %v, want Unavailable with %q and a remedy", err, says)
			}
			if p.Snapshot() != before {
				t.Error("the host has changed")
			}
		})
	}
	wired := radiotest.NewPhy(t)
	wired.NoCfg = true
	busy := radiotest.NewPhy(t)
	busy.Up, busy.State.Network = true, "office"
	unavailable("of another program", busy, meshLab(), `in the network "office"`)
	mesh := radiotest.NewPhy(t)
	mesh.Up, mesh.State.Mode, mesh.State.Frequency = true, radio.ModeMesh, 2412
	unavailable("in a mesh", mesh, meshLab(), "mesh leave")
	p2p := radiotest.NewPhy(t)
	p2p.State.Mode = ""
	unavailable("of another type", p2p, meshLab(), "could not be put back")
	unavailable("other phy", radiotest.NewPhy(t), with(meshLab(), func(c *radio.Config) { c.Device = "phy0" }), "of phy3, not of phy0")
	unavailable("no interface", radiotest.NewPhy(t), with(meshLab(), func(c *radio.Config) { c.Interface = "wlan9" }), "wlan9")

	t.Run("channel", func(t *testing.T) {
		p := radiotest.NewPhy(t)
		_, records, err := configure(t, p, with(meshLab(), func(c *radio.Config) { c.Channel = 14 }))
		e, ok := errors.AsType[*radio.Error](err)
		if !ok || e.Kind != radio.Rejected || !strings.Contains(e.Setting, "channel") || !strings.Contains(e.Remedy, "regulatory") || len(records) == 0 {
			t.Errorf("got %v and %d records, want Rejected of the channel", err, len(records))
		}
	})
}
