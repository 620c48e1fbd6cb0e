package vtime

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"
)

// BitRate is a rate in bits per second.
type BitRate int64

// Bytes is an amount of data in bytes.
type Bytes int64

// Decibel is a ratio in dB (a gain, a loss, a threshold relative to another).
type Decibel float64

// DBm is a power in decibels above one milliwatt.
type DBm float64

// Metres is a distance in metres.
type Metres float64

// Fraction is a dimensionless share, 0 to 1.
type Fraction float64

// The decimal and binary multiples of a byte. hopbed's files keep them apart:
// "MB" is 10^6 and "MiB" is 2^20 bytes.
const (
	Byte Bytes = 1
	KB         = 1000 * Byte
	MB         = 1000 * KB
	GB         = 1000 * MB
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
)

// The multiples of a bit rate, all decimal.
const (
	BitPerSecond  BitRate = 1
	KbitPerSecond         = 1000 * BitPerSecond
	MbitPerSecond         = 1000 * KbitPerSecond
	GbitPerSecond         = 1000 * MbitPerSecond
)

// TxTime returns the time that n bytes take at rate r, rounded up to the
// nanosecond; exact in integers for every n and r. It returns the largest
// Duration when r is not positive or the result does not fit.
func (r BitRate) TxTime(n Bytes) Duration {
	if n <= 0 {
		return 0
	}
	if r <= 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(n), 8*1_000_000_000)
	if hi >= uint64(r) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(r))
	if rem > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return Duration(q)
}

type unit struct {
	suffix string
	factor float64
}

// The first unit of each table whose value divides evenly is the one that
// String picks, so they are ordered from large to small and decimal before
// binary.
var (
	durationUnits = []unit{{"h", float64(Hour)}, {"min", float64(Minute)}, {"s", float64(Second)}, {"ms", float64(Millisecond)}, {"us", float64(Microsecond)}, {"µs", float64(Microsecond)}, {"ns", 1}}
	rateUnits     = []unit{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}
	byteUnits     = []unit{{"GiB", float64(GiB)}, {"MiB", float64(MiB)}, {"KiB", float64(KiB)}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}
)

// split separates "5.5mbit" into 5.5 and "mbit". Exponents, hexadecimal, NaN
// and infinities are not numbers here.
func split(s string) (num float64, suffix string, err error) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || i == 0 && (s[i] == '-' || s[i] == '+')) {
		i++
	}
	num, err = strconv.ParseFloat(s[:i], 64)
	if err != nil || math.IsInf(num, 0) {
		return 0, "", fmt.Errorf("%q does not begin with a number", s)
	}
	return num, strings.TrimSpace(s[i:]), nil
}

func names(us []unit) string {
	var n []string
	for _, u := range us {
		n = append(n, u.suffix)
	}
	sort.Strings(n)
	return strings.Join(n, ", ")
}

func parse(kind, s string, us []unit, foldCase bool) (int64, error) {
	num, suffix, err := split(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	if suffix == "" {
		return 0, fmt.Errorf("%s %q has no unit (one of %s)", kind, s, names(us))
	}
	for _, u := range us {
		if suffix == u.suffix || foldCase && strings.EqualFold(suffix, u.suffix) {
			v := math.Round(num * u.factor)
			if math.Abs(v) >= math.MaxInt64 {
				return 0, fmt.Errorf("%s %q is out of range", kind, s)
			}
			return int64(v), nil
		}
	}
	return 0, fmt.Errorf("%s %q has the unit %q, want one of %s", kind, s, suffix, names(us))
}

func format(v int64, us []unit) string {
	for _, u := range us {
		f := int64(u.factor)
		if v != 0 && v%f == 0 {
			return strconv.FormatInt(v/f, 10) + u.suffix
		}
	}
	return "0" + us[len(us)-1].suffix
}

// ParseDuration reads "8160us", "100ms", "300s", "5min" or "1h". A unit is
// required; the value may be negative (the caller decides).
func ParseDuration(s string) (Duration, error) {
	v, err := parse("duration", s, durationUnits, false)
	return Duration(v), err
}

// String writes the duration in the largest unit that keeps it whole.
//
// Minutes and hours are read but not written: experiments are compared in
// seconds.
func (d Duration) String() string { return format(int64(d), durationUnits[2:]) }

// String writes the moment as seconds with nanosecond digits.
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return strconv.FormatFloat(float64(t)/1e9, 'f', 9, 64) + "s"
}

// ParseBitRate reads "11mbit", "5.5mbit", "64kbit" (tc's names, in bits per
// second, decimal).
func ParseBitRate(s string) (BitRate, error) {
	v, err := parse("rate", s, rateUnits, true)
	return BitRate(v), err
}

// String writes the rate in the largest unit that keeps it whole.
func (r BitRate) String() string { return format(int64(r), rateUnits) }

// ParseBytes reads "16KiB", "1MiB", "10MB" or "1400B".
func ParseBytes(s string) (Bytes, error) {
	v, err := parse("size", s, byteUnits, false)
	return Bytes(v), err
}

// String writes the size in the largest unit that keeps it whole.
func (b Bytes) String() string { return format(int64(b), byteUnits) }

func parseFloat(kind, s, suffix string) (float64, error) {
	num, suf, err := split(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	if suf != suffix {
		return 0, fmt.Errorf("%s %q needs the unit %s", kind, s, suffix)
	}
	return num, nil
}

// ParseDecibel reads "6dB" or "-7dB".
func ParseDecibel(s string) (Decibel, error) {
	v, err := parseFloat("ratio", s, "dB")
	return Decibel(v), err
}

// String writes the ratio with its unit.
func (d Decibel) String() string { return strconv.FormatFloat(float64(d), 'g', -1, 64) + "dB" }

// ParseDBm reads "15dBm".
func ParseDBm(s string) (DBm, error) {
	v, err := parseFloat("power", s, "dBm")
	return DBm(v), err
}

// String writes the power with its unit.
func (d DBm) String() string { return strconv.FormatFloat(float64(d), 'g', -1, 64) + "dBm" }

// ParseMetres reads "120m" or "1.5km".
func ParseMetres(s string) (Metres, error) {
	s = strings.TrimSpace(s)
	num, suf, err := split(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("distance: %w", err)
	case suf == "m":
		return Metres(num), nil
	case suf == "km":
		return Metres(num * 1000), nil
	}
	return 0, fmt.Errorf("distance %q needs the unit m or km", s)
}

// String writes the distance in metres.
func (m Metres) String() string { return strconv.FormatFloat(float64(m), 'g', -1, 64) + "m" }

// ParseFraction reads a percentage such as "5%"; the result is 0.05. It does
// not limit the range: the caller knows what is allowed.
func ParseFraction(s string) (Fraction, error) {
	v, err := parseFloat("share", s, "%")
	return Fraction(v / 100), err
}

// String writes the share as a percentage.
func (f Fraction) String() string {
	return strconv.FormatFloat(math.Round(float64(f)*100*1e9)/1e9, 'g', -1, 64) + "%"
}
