package safetext

import "testing"

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain n01":                "plain n01",
		"Müller–Straße 漢字":         "Müller–Straße 漢字",
		"\x1b[31mred\x07":          `\x1b[31mred\x07`,
		"a\nb\tc\r\n":              `a\x0ab\x09c\x0d\x0a`,
		"\u202eevil\u2066":         `\u{202e}evil\u{2066}`,
		"bad\xff\xc3byte":          `bad\xff\xc3byte`,
		"nul\x00 c1\u009b0m":       `nul\x00 c1\x9b0m`,
		"para\u2029 tag\U000e0041": `para\u{2029} tag\u{e0041}`,
	} {
		if got := Line(in, 0); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abcde…"}, {"äöüß", 3, "äö…"}, {"x", 1, "x"}, {"xy", 1, "…"}} {
		if got := Line(c.in, c.limit); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func TestBlock(t *testing.T) {
	if got, want := Block("a:\r\n\tb\x1b]0;x\x07\rc"), "a:\n\tb\\x1b]0;x\\x07\\x0dc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
