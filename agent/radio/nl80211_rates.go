package radio

import (
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// band is the one of the configuration: 2 or 5 GHz.
func band(c *Config) int {
	if f, err := Frequency(c.Channel); err == nil && f > 5000 || c.Standard == "802.11a" {
		return 5
	}
	return 2
}

// dataRates are those that unicast data may have; nil = as they are.
func dataRates(c *Config) []vtime.BitRate {
	const m = vtime.MbitPerSecond
	cck, ofdm := []vtime.BitRate{m, 2 * m, 5_500_000, 11 * m}, []vtime.BitRate{6 * m, 9 * m, 12 * m, 18 * m, 24 * m, 36 * m, 48 * m, 54 * m}
	switch {
	case c.Rate != 0:
		return []vtime.BitRate{c.Rate}
	case c.Standard == "802.11b":
		return cck
	case c.Standard == "802.11a":
		return ofdm
	case c.Standard == "802.11g":
		return append(cck, ofdm...)
	}
	return nil
}

// rates are the arguments of iw set bitrates. Those of 802.11n and later need no
// mask: the networks that are joined here have none.
func (nl80211) rates(c Config) []string {
	rs := dataRates(&c)
	if rs == nil {
		return nil
	}
	b := map[int]string{2: "2.4", 5: "5"}[band(&c)]
	out := []string{"legacy-" + b}
	for _, r := range rs {
		out = append(out, megabits(r))
	}
	return out
}

func (nl80211) rateSettings(c Config) []string {
	var out []string
	if c.Standard != "" {
		out = append(out, settingStandard)
	}
	if c.Rate != 0 {
		out = append(out, settingRate)
	}
	return out
}

func (nl80211) noAckMap(c Config) (m int, any bool) {
	for i, q := range c.Queues {
		if q.NoAck != nil {
			any = true
			if *q.NoAck {
				m |= tidMaps[i]
			}
		}
	}
	return m, any
}

func equalRates(a, b []vtime.BitRate) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
