package safetext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes s a harmless line of at most limit characters (0: any length);
// what is cut is marked by "…". Line breaks and tabs become escapes too.
func Line(s string, limit int) string { return clean(s, limit, false) }

// Block makes s harmless and keeps its line breaks and tabs.
func Block(s string) string { return clean(s, 0, true) }

func clean(s string, limit int, block bool) string {
	if limit > 0 && utf8.RuneCountInString(s) > limit {
		n := 0
		for i := range s {
			if n == limit-1 {
				s = s[:i] + "…"
				break
			}
			n++
		}
	}
	ok := true
	for _, r := range s {
		if r == utf8.RuneError || hidden(r) {
			ok = false
			break
		}
	}
	if ok {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case block && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case block && r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
			// one line break, not two
		case hidden(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// hidden reports whether a character acts on its surroundings or shows nothing
// instead of being seen: controls (C0, C1), format characters (direction
// overrides, joiners, tags), line and paragraph separators, private use.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Co, unicode.Zl, unicode.Zp)
}
