package spec

import "testing"

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("x", []byte(designExample)); err != nil {
			b.Fatal(err)
		}
	}
}
