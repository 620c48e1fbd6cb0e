package wifi

import (
	"hash/fnv"
	"math"
	"math/cmplx"
	"testing"

	"github.com/hopbed/hopbed/netem/des/fmath"
)

// cckWord is a codeword of 802.11-2012 17.4.6 for the phases φ1…φ4.
func cckWord(p1, p2, p3, p4 float64) [8]complex128 {
	e := func(x float64) complex128 { return cmplx.Exp(complex(0, x)) }
	return [8]complex128{
		e(p1 + p2 + p3 + p4), e(p1 + p3 + p4), e(p1 + p2 + p4), -e(p1 + p4),
		e(p1 + p2 + p3), e(p1 + p3), -e(p1 + p2), e(p1),
	}
}

// TestCckDistances derives the union bounds of the error model from the code
// itself: the squared distances between codewords of 8 unit chips. A word at
// squared distance d² is mistaken with Q(√(d²·γ/2)).
func TestCckDistances(t *testing.T) {
	spectrum := func(words [][8]complex128) map[int]int {
		counts := map[int]int{}
		for _, w := range words[1:] {
			d := 0.0
			for i := range w {
				a := cmplx.Abs(w[i] - words[0][i])
				d += a * a
			}
			counts[int(math.Round(d/2))]++ // the factor under the root
		}
		return counts
	}
	quarter := math.Pi / 2
	var w11 [][8]complex128
	for i := 0; i < 256; i++ {
		w11 = append(w11, cckWord(quarter*float64(i&3), quarter*float64(i>>2&3), quarter*float64(i>>4&3), quarter*float64(i>>6)))
	}
	var w55 [][8]complex128 // CCK-5.5: φ2 = d2·π+π/2, φ3 = 0, φ4 = d3·π
	for i := 0; i < 16; i++ {
		w55 = append(w55, cckWord(quarter*float64(i&3), math.Pi*float64(i>>2&1)+quarter, 0, math.Pi*float64(i>>3)))
	}
	for _, c := range []struct {
		m     *mode
		words [][8]complex128
	}{{dsssModes[3], w11}, {dsssModes[2], w55}} {
		const g = 1.7
		bound := 0.0
		for k, n := range spectrum(c.words) {
			bound += float64(n) * fmath.Q(math.Sqrt(float64(k)*g))
		}
		m := float64(len(c.words))
		bound *= m / 2 / (m - 1) // orthogonal-like words: half of the bits of a wrong word differ
		if got := c.m.ber(g); math.Abs(got/bound-1) > 1e-9 {
			t.Errorf("%v: bit error rate %v, from the code's distances %v (%v)", c.m.rate, got, bound, spectrum(c.words))
		}
	}
}

func allModes() []*mode { return append(append([]*mode(nil), dsssModes...), ofdmModes...) }

func TestBitErrorRatesFall(t *testing.T) {
	for _, m := range allModes() {
		last := 1.0
		for db := -30.0; db <= 42; db += 0.25 {
			b := m.ber(fmath.FromDB(db))
			if b > last || b < 0 || b > 0.5 {
				t.Fatalf("%v: bit error rate %v at %v dB after %v", m.rate, b, db, last)
			}
			last = b
		}
		if b := m.ber(fmath.FromDB(-20)); b < 0.2 {
			t.Errorf("%v: bit error rate %v at −20 dB: want noise", m.rate, b)
		}
		if last > 1e-18 {
			t.Errorf("%v: bit error rate %v at 42 dB", m.rate, last)
		}
	}
}

func TestTableFollowsTheFormula(t *testing.T) {
	for _, m := range allModes() {
		tab := m.table()
		for db := -32.0; db < 44; db += 0.0137 {
			g := fmath.FromDB(db)
			want := math.Log1p(-m.ber(g))
			if db < -30 {
				want = math.Log1p(-m.ber(fmath.FromDB(-30)))
			}
			if want > -1e-12 || want < -0.3 { // no errors, or only errors
				continue
			}
			if got := tab.lnBit(g); math.Abs(got/want-1) > 0.02 {
				t.Errorf("%v at %.2f dB: ln(1−BER) %v, formula %v", m.rate, db, got, want)
			}
		}
		if g := tab.perfect; m.ber(g) > 1e-18 || m.ber(g*0.97) < 1e-18 {
			t.Errorf("%v: perfect from %.2f dB with %v", m.rate, fmath.ToDB(g), m.ber(g))
		}
		if tab.lnBit(0) != tab.ln[0] || tab.lnBit(math.Inf(1)) != 0 {
			t.Errorf("%v: the table's ends", m.rate)
		}
	}
}

// TestDecodingThresholds: the thresholds lie where cards and the standard's
// sensitivity tables put them relative to each other.
func TestDecodingThresholds(t *testing.T) {
	snr := func(std Standard, i int) float64 {
		v, err := DecodeSNR(DefaultMAC(std), modes(std)[i].rate)
		if err != nil {
			t.Fatal(err)
		}
		return float64(v)
	}
	b := []float64{snr(StandardB, 0), snr(StandardB, 1), snr(StandardB, 2), snr(StandardB, 3)}
	// Known points: DBPSK needs Eb/N0 of 10.3 dB for 1e-5, that is −0.1 dB per chip.
	if math.Abs(b[0]-(-0.1)) > 0.3 || b[3] < 7 || b[3] > 8.5 {
		t.Errorf("802.11b thresholds %.2f dB", b)
	}
	if d := b[3] - b[0]; d < 5 || d > 9 {
		t.Errorf("11 Mb/s needs %.1f dB more than 1 Mb/s: data sheets say 5–9 dB and more", d)
	}
	// 802.11-2012 table 18-14: −82, −81, −79, −77, −74, −70, −66, −65 dBm.
	table := []float64{-82, -81, -79, -77, -74, -70, -66, -65}
	for i := range table {
		want := table[i] - table[0]
		if got := snr(StandardG, i) - snr(StandardG, 0); math.Abs(got-want) > 2.5 {
			t.Errorf("%v lies %.1f dB above 6mbit, the standard's sensitivity %.0f dB", ofdmModes[i].rate, got, want)
		}
	}
}

// TestErrorTablesArePinned: bits of the tables decide receptions; they must be
// equal on every architecture.
func TestErrorTablesArePinned(t *testing.T) {
	h := fnv.New64a()
	for _, m := range allModes() {
		for _, x := range m.table().ln {
			b := math.Float64bits(x)
			for k := 0; k < 64; k += 8 {
				h.Write([]byte{byte(b >> k)})
			}
		}
	}
	if got, want := h.Sum64(), uint64(0x247068dc1c3bcc53); got != want {
		t.Errorf("hash of the error tables %#x, want %#x", got, want)
	}
}
