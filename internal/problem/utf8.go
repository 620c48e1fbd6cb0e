package problem

import "unicode/utf8"

// BadUTF8 returns the place of the first byte that is not UTF-8, in runes from 1;
// the end of the data where there is none.
func BadUTF8(data []byte) (line, col int) {
	line, col = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size <= 1 {
			break
		}
		if r == '\n' {
			line, col = line+1, 0
		}
		col++
		data = data[size:]
	}
	return line, col
}
