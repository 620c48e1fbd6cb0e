package spec

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopbed/hopbed/netem/vtime"
)

var decimal = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// parseScalar reads a text as one of the format's scalar types.
func parseScalar(t reflect.Type, s string) (any, error) {
	switch t {
	case reflect.TypeFor[vtime.Duration]():
		return vtime.ParseDuration(s)
	case reflect.TypeFor[vtime.BitRate]():
		return vtime.ParseBitRate(s)
	case reflect.TypeFor[vtime.Bytes]():
		return vtime.ParseBytes(s)
	case reflect.TypeFor[vtime.Decibel]():
		return vtime.ParseDecibel(s)
	case reflect.TypeFor[vtime.DBm]():
		return vtime.ParseDBm(s)
	case reflect.TypeFor[vtime.Metres]():
		return vtime.ParseMetres(s)
	case reflect.TypeFor[vtime.Fraction]():
		return vtime.ParseFraction(s)
	}
	switch t.Kind() {
	case reflect.String:
		return s, nil
	case reflect.Bool:
		if s == "true" || s == "false" {
			return s == "true", nil
		}
		return nil, fmt.Errorf("not a truth value")
	case reflect.Float64:
		if !decimal.MatchString(s) {
			return nil, fmt.Errorf("not a number in decimal notation")
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(x, 0) {
			return nil, fmt.Errorf("the number is too large")
		}
		return x, nil
	}
	if !decimal.MatchString(s) || strings.Contains(s, ".") {
		return nil, fmt.Errorf("not a whole number")
	}
	if t.Kind() == reflect.Uint64 {
		x, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("out of range")
		}
		return x, nil
	}
	x, err := strconv.Atoi(s)
	if err != nil {
		return nil, fmt.Errorf("the number is too large")
	}
	return x, nil
}

// limit reads a tag min or max, which is written as in a file. A tag that does
// not parse is a mistake of this package, found by every test.
func (f field) limit(t reflect.Type, tag string, none float64) float64 {
	if tag == "" {
		return none
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	x, err := parseScalar(t, tag)
	if err != nil {
		panic("spec: the tag " + tag + " of " + f.key + ": " + err.Error())
	}
	return number(x)
}

// number gives the value of any numeric type; 0 for the others, which have no
// limits.
func number(x any) float64 {
	v := reflect.ValueOf(x)
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

func (f field) inRange(x any) bool {
	v := number(x)
	return f.min == "" && f.max == "" || v >= f.low && v <= f.high
}

type pattern struct {
	ok      func(string) bool
	regexp  string // for the schema
	what    string
	allowed string
}

const (
	nameRegexp      = `^[a-z0-9][a-z0-9._-]{0,63}$`
	interfaceRegexp = `^[a-z][a-z0-9._-]{0,14}$`
	referenceRegexp = `^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$`
)

// patterns are the kinds of text of the format.
var patterns = map[string]pattern{
	"name": {regexp.MustCompile(nameRegexp).MatchString, nameRegexp, "not a name",
		"lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, at most 64"},
	"interface": {interfaceName, interfaceRegexp, "not a name of an interface",
		"a lower-case letter, then letters, digits, dot, dash and underscore, at most 15, and none of " + strings.Join(reservedInterfaces, ", ")},
	"reference": {regexp.MustCompile(referenceRegexp).MatchString, referenceRegexp, "not a reference", "paper/experiment, for example hop-nsdi09/load30"},
	"line": {func(s string) bool { return len(s) <= 200 && printable(s, "") }, `^.{0,200}$`, "not one line of plain text",
		"up to 200 bytes without control characters"},
	"text": {func(s string) bool { return printable(s, "\n\t") }, "", "holds control characters", "plain text"},
	"argument": {func(s string) bool { return s != "" && len(s) <= 1000 && printable(s, "") }, `^.{1,1000}$`, "not a word of a command line",
		"up to 1000 bytes without control characters"},
	"path": {func(s string) bool {
		return s != "" && len(s) <= 1024 && printable(s, "") && path.Clean(s) != ".."
	}, "", "not a path", "the path of a file, without control characters"},
}

// reservedInterfaces are names that a node has already, or that Linux gives to
// what it makes by itself in a new network namespace or to settings of all
// interfaces.
var reservedInterfaces = []string{"lo", "wlan0", "br0", "all", "default", "tunl0", "gre0", "gretap0", "erspan0",
	"ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

var interfacePattern = regexp.MustCompile(interfaceRegexp)

func interfaceName(s string) bool {
	return interfacePattern.MatchString(s) && !slices.Contains(reservedInterfaces, s)
}

// printable refuses control characters, and the invisible ones that make a
// text read differently from what it is (Unicode categories Cc, Cf, Zl, Zp).
func printable(s, except string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) && !strings.ContainsRune(except, r) {
			return false
		}
	}
	return true
}
