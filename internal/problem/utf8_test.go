package problem

import "testing"

func TestBadUTF8(t *testing.T) {
	for text, want := range map[string][2]int{
		"\xff":              {1, 1},
		"ab\xff":            {1, 3},
		"ä\xff":             {1, 2}, // columns are runes
		"a\nbc\n\xc3":       {3, 1},
		"\n\n  é: \xe2\x82": {3, 6},
		"all is well":       {1, 12},
	} {
		if line, col := BadUTF8([]byte(text)); line != want[0] || col != want[1] {
			t.Errorf("%q: %d:%d, want %v", text, line, col, want)
		}
	}
}
