package radio_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestPassiveDriversConform(t *testing.T) {
	for _, name := range []string{radio.None, radio.Emulated} {
		t.Run(name, func(t *testing.T) {
			c := radio.Config{Driver: name, Interface: "wlan0", Rate: 11 * vtime.MbitPerSecond, Standard: "802.11b", Retries: ptr(7)}
			c.Queues[0].NoAck = ptr(true)
			radiotest.Conform(t, radiotest.Subject{
				Driver:  name,
				Configs: map[string]radio.Config{"an experiment's": c, "nothing": {Driver: name, Interface: "wlan0"}},
				Unsupported: map[string]radio.Config{
					"channel of the lab": with(c, func(c *radio.Config) { c.Channel = 6 }),
					"mode of the lab":    with(c, func(c *radio.Config) { c.Mode = radio.ModeAdhoc }),
				},
				New: func(t testing.TB) radiotest.Host { return radiotest.NewPhy(t) },
			})
			s, err := radio.Configure(t.Context(), radiotest.NewPhy(t), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range s {
				if x.State != radio.NotApplied || x.Wanted == "" {
					t.Errorf("%+v, want it not applied", x)
				}
			}
		})
	}
	_, err := radio.Configure(t.Context(), radiotest.NewPhy(t), radio.Config{Driver: "wext", Interface: "wlan0"}, nil)
	if e, ok := errors.AsType[*radio.Error](err); !ok || e.Kind != radio.Invalid || !strings.Contains(e.Remedy, "madwifi, nl80211, emulated, none") {
		t.Errorf("got %v, want Invalid with the names", err)
	}
}
