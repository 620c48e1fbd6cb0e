package vtime

import (
	"math"
	"testing"
)

func TestParseRoundTrip(t *testing.T) {
	for _, s := range []string{"8160us", "100ms", "300s", "7ns", "-3s"} {
		d, err := ParseDuration(s)
		if err != nil || d.String() != s {
			t.Errorf("ParseDuration(%q) = %v, %v", s, d, err)
		}
	}
	if d, err := ParseDuration("5min"); err != nil || d.String() != "300s" {
		t.Errorf("ParseDuration(5min) = %v, %v", d, err)
	}
	for _, s := range []string{"11mbit", "5500kbit", "1gbit", "9bit"} {
		r, err := ParseBitRate(s)
		if err != nil || r.String() != s {
			t.Errorf("ParseBitRate(%q) = %v, %v", s, r, err)
		}
	}
	for _, s := range []string{"1MiB", "256KiB", "10MB", "16KiB", "1400B", "64kB"} {
		b, err := ParseBytes(s)
		if err != nil || b.String() != s {
			t.Errorf("ParseBytes(%q) = %v, %v", s, b, err)
		}
	}
	for _, s := range []string{"6dB", "-7dB", "2.5dB"} {
		b, err := ParseDecibel(s)
		if err != nil || b.String() != s {
			t.Errorf("ParseDecibel(%q) = %v, %v", s, b, err)
		}
	}
	if f, err := ParseFraction("12.5%"); err != nil || f != 0.125 || f.String() != "12.5%" {
		t.Errorf("ParseFraction = %v, %v", f, err)
	}
}

func TestParseRefusesWhatIsNotAValue(t *testing.T) {
	for _, s := range []string{"", "5", "ms", "5 parsecs", "NaNs", "1e3s", "0x10s", "99999999999h", "--5s", "5MS"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", s, d)
		}
	}
	for _, s := range []string{"1MIB", "5", "B", "1e9999B"} {
		if d, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %v, want an error", s, d)
		}
	}
}

func TestTxTime(t *testing.T) {
	cases := []struct {
		r    BitRate
		n    Bytes
		want Duration
	}{
		{11 * MbitPerSecond, 1538, 1118546}, // 12304 bit at 11 Mb/s = 1118545.45 ns, rounded up
		{MbitPerSecond, 14, 112 * Microsecond},
		{GbitPerSecond, 1, 8},
		{1, 1 << 40, math.MaxInt64},
		{0, 1, math.MaxInt64},
		{5, 0, 0},
	}
	for _, c := range cases {
		if got := c.r.TxTime(c.n); got != c.want {
			t.Errorf("%v.TxTime(%v) = %d, want %d", c.r, c.n, got, c.want)
		}
	}
}

func TestNeverSaturates(t *testing.T) {
	if Never.Add(Second) != Never || Time(5).Add(Duration(math.MaxInt64)) != Never {
		t.Error("adding to Never must stay Never")
	}
}
