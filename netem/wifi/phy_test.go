package wifi

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func phyOf(t testing.TB, change func(m *MAC)) *phy {
	t.Helper()
	m := DefaultMAC(StandardB)
	change(&m)
	p, err := newPHY(&m)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestAirTimes(t *testing.T) {
	b := func(m *MAC) {}
	short := func(m *MAC) { m.Preamble = PreambleShort }
	g := func(m *MAC) { *m = DefaultMAC(StandardG) }
	a := func(m *MAC) { *m = DefaultMAC(StandardA) }
	for _, c := range []struct {
		name   string
		change func(m *MAC)
		rate   vtime.BitRate
		n      vtime.Bytes
		want   vtime.Duration
	}{
		// 802.11-2012 17.3.4: 144+48 µs (72+24 µs) and the bits, rounded up to a µs.
		{"b long 11", b, 11 * mbit, 1536, (192 + 1118) * us},
		{"b long 11, exact", b, 11 * mbit, 11, (192 + 8) * us},
		{"b long 5.5", b, 5500 * vtime.KbitPerSecond, 1536, (192 + 2235) * us},
		{"b long 1", b, 1 * mbit, 14, (192 + 112) * us},
		{"b long 2", b, 2 * mbit, 14, (192 + 56) * us},
		{"b short 11", short, 11 * mbit, 1536, (96 + 1118) * us},
		{"b short at 1 Mb/s is long", short, 1 * mbit, 14, (192 + 112) * us},
		// 18.4.3: 20 µs and symbols of 4 µs; ERP adds 6 µs (19.8.3).
		{"g 54", g, 54 * mbit, 1536, (20 + 57*4 + 6) * us},
		{"g 54, one symbol more", g, 54 * mbit, 1538, (20 + 58*4 + 6) * us},
		{"g 24 ack", g, 24 * mbit, 14, (20 + 2*4 + 6) * us},
		{"g 6 ack", g, 6 * mbit, 14, (20 + 6*4 + 6) * us},
		{"g dsss", g, 11 * mbit, 1536, (192 + 1118) * us},
		{"a 54", a, 54 * mbit, 1536, (20 + 57*4) * us},
		{"a 6 ack", a, 6 * mbit, 14, (20 + 6*4) * us},
		{"a 9", a, 9 * mbit, 100, (20 + 23*4) * us},
	} {
		p := phyOf(t, c.change)
		md, err := modeOf(p.std, c.rate)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.txTime(md, c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestInterframeSpaces(t *testing.T) {
	for _, c := range []struct {
		std                              Standard
		slot, sifs, difs, eifs, ackAfter vtime.Duration // ackAfter: end of data → ACKTimeout
	}{
		{StandardB, 20 * us, 10 * us, 50 * us, 364 * us, (10 + 20 + 192) * us},
		{StandardG, 9 * us, 10 * us, 28 * us, 88 * us, (10 + 9 + 25) * us},
		{StandardA, 9 * us, 16 * us, 34 * us, 94 * us, (16 + 9 + 25) * us},
	} {
		p := phyOf(t, func(m *MAC) { *m = DefaultMAC(c.std) })
		if p.slot != c.slot || p.sifs != c.sifs || p.aifs(2) != c.difs || p.eifsExtra+p.aifs(2) != c.eifs || p.ackTimeout != c.ackAfter {
			t.Errorf("%v: slot %v, SIFS %v, DIFS %v, EIFS %v, ACKTimeout %v, want %v, %v, %v, %v, %v", c.std,
				p.slot, p.sifs, p.aifs(2), p.eifsExtra+p.aifs(2), p.ackTimeout, c.slot, c.sifs, c.difs, c.eifs, c.ackAfter)
		}
	}
	if p := phyOf(t, func(m *MAC) { *m = DefaultMAC(StandardG); m.LongSlot = true }); p.slot != 20*us {
		t.Errorf("802.11g with the long slot: %v", p.slot)
	}
}

func TestDefaultBasicRate(t *testing.T) {
	for _, c := range []struct {
		std        Standard
		rate, want vtime.BitRate
	}{
		{StandardB, 11 * mbit, 2 * mbit}, {StandardB, 2 * mbit, 2 * mbit}, {StandardB, 1 * mbit, 1 * mbit},
		{StandardG, 54 * mbit, 24 * mbit}, {StandardG, 18 * mbit, 12 * mbit}, {StandardG, 6 * mbit, 6 * mbit}, {StandardG, 11 * mbit, 2 * mbit},
		{StandardA, 9 * mbit, 6 * mbit},
	} {
		p := phyOf(t, func(m *MAC) { *m = DefaultMAC(c.std); m.Rate, m.BasicRate = c.rate, 0 })
		if p.control.rate != c.want {
			t.Errorf("%v at %v: basic rate %v, want %v", c.std, c.rate, p.control.rate, c.want)
		}
	}
}

func TestDefaultMACIsMadWifis(t *testing.T) {
	// AIFSN, log CWmin, log CWmax, txop in µs of madwifi's phyParamForAC.
	want := map[Standard][NumAC][4]int{
		StandardB: {BK: {7, 5, 10, 0}, BE: {3, 5, 10, 0}, VI: {2, 4, 5, 6016}, VO: {2, 3, 4, 3264}},
		StandardG: {BK: {7, 4, 10, 0}, BE: {3, 4, 10, 0}, VI: {2, 3, 4, 3008}, VO: {2, 2, 3, 1504}},
	}
	for std, acs := range want {
		m := DefaultMAC(std)
		for ac, w := range acs {
			q := m.Queues[ac]
			if q.AIFSN != w[0] || q.CWmin != 1<<w[1]-1 || q.CWmax != 1<<w[2]-1 || q.TXOP != vtime.Duration(w[3])*us {
				t.Errorf("%v %v: %+v, want %v", std, AC(ac), q, w)
			}
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%v: %v", std, err)
		}
	}
}

func TestValidateNamesTheValue(t *testing.T) {
	for want, change := range map[string]func(m *MAC){
		"7mbit is not a rate of 802.11b, want one of 1mbit, 2mbit, 5500kbit, 11mbit": func(m *MAC) { m.Rate = 7 * mbit },
		"basic rate 11mbit is above the data rate 2mbit":                             func(m *MAC) { m.Rate, m.BasicRate = 2*mbit, 11*mbit },
		"retry limit 300":                      func(m *MAC) { m.Retries = 300 },
		"RTS threshold -1":                     func(m *MAC) { m.RTSThreshold = -1 },
		"queue vo: AIFSN 0":                    func(m *MAC) { m.Queues[VO].AIFSN = 0 },
		"queue be: contention window 30…1023":  func(m *MAC) { m.Queues[BE].CWmin = 30 },
		"queue be: contention window 31…15":    func(m *MAC) { m.Queues[BE].CWmax = 15 },
		"queue bk: txop limit -1us":            func(m *MAC) { m.Queues[BK].TXOP = -us },
		"queue bk: limit of 0 packets":         func(m *MAC) { m.Queues[BK].Limit = 0 },
		"queue bk: limit of -5 bytes":          func(m *MAC) { m.Queues[BK].LimitBytes = -5 },
		"queue bk: acknowledgement policy":     func(m *MAC) { m.Queues[BK].Ack = 9 },
		"protection is an option of 802.11g":   func(m *MAC) { m.Protection = true },
		"the long slot is an option":           func(m *MAC) { m.LongSlot = true },
		"preamble 7 is unknown":                func(m *MAC) { m.Preamble = 7 },
		"standard9 is unknown, want one of":    func(m *MAC) { m.Standard = 9 },
		"protection rate 24mbit is an OFDM":    func(m *MAC) { *m = DefaultMAC(StandardG); m.Protection, m.ProtectionRate = true, 24*mbit },
		"EIFS rate: 54mbit is not a rate of 8": func(m *MAC) { m.EIFSRate = 54 * mbit },
	} {
		m := DefaultMAC(StandardB)
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate: %v, want an error with %q", err, want)
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for ac := AC(0); ac < NumAC; ac++ {
		if got, err := ParseAC(strings.ToUpper(ac.String())); err != nil || got != ac {
			t.Errorf("ParseAC(%v) = %v, %v", ac, got, err)
		}
		if got, err := ParseAC("AC_" + ac.String()); err != nil || got != ac {
			t.Errorf("ParseAC(AC_%v) = %v, %v", ac, got, err)
		}
	}
	for _, s := range []Standard{StandardB, StandardG, StandardA} {
		if got, err := ParseStandard(s.String()); err != nil || got != s {
			t.Errorf("ParseStandard(%v) = %v, %v", s, got, err)
		}
	}
	for _, p := range []Preamble{PreambleLong, PreambleShort} {
		if got, err := ParsePreamble(p.String()); err != nil || got != p {
			t.Errorf("ParsePreamble(%v) = %v, %v", p, got, err)
		}
	}
	for _, p := range []AckPolicy{AckNormal, AckNone} {
		if got, err := ParseAckPolicy(p.String()); err != nil || got != p {
			t.Errorf("ParseAckPolicy(%v) = %v, %v", p, got, err)
		}
	}
	for what, err := range map[string]error{
		"queue":    second(ParseAC("video")),
		"standard": second(ParseStandard("802.11n")),
		"preamble": second(ParsePreamble("medium")),
		"policy":   second(ParseAckPolicy("block")),
	} {
		if err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: %v, want an error that says what is allowed", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
