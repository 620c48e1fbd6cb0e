package wifi

import (
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

func scatter(n int, side float64) []Position {
	s := des.NewStream(9, "scatter")
	pos := make([]Position, n)
	for i := range pos {
		pos[i] = Position{vtime.Metres(s.Float64() * side), vtime.Metres(s.Float64() * side)}
	}
	return pos
}

func mustChannel(t testing.TB, seed uint64, r Radio, mac MAC, pos []Position) *Channel {
	t.Helper()
	ch, err := NewChannel(seed, r, mac, pos)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func TestLogDistance(t *testing.T) {
	r := DefaultRadio()
	ch := mustChannel(t, 1, r, DefaultMAC(StandardB), []Position{{0, 0}, {10, 0}, {0, 100}, {0.1, 0}})
	for _, c := range []struct {
		i, j int
		want float64
	}{
		{0, 1, 15 - 40.05 - 33}, {1, 0, 15 - 40.05 - 33}, {0, 2, 15 - 40.05 - 66},
		{0, 3, 15 - 40.05}, // nearer than the reference distance
	} {
		if got := float64(ch.RxPower(c.i, c.j)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("power %d→%d %.3f dBm, want %.3f", c.i, c.j, got, c.want)
		}
		if got := float64(ch.SNR(c.i, c.j)); math.Abs(got-c.want-95) > 1e-9 {
			t.Errorf("SNR %d→%d %.3f dB, want %.3f", c.i, c.j, got, c.want+95)
		}
	}
}

func TestSenseThresholdIsRelativeToDecoding(t *testing.T) {
	mac := DefaultMAC(StandardB)
	decode, err := DecodeSNR(mac, mac.Rate)
	if err != nil {
		t.Fatal(err)
	}
	r := DefaultRadio()
	r.Sense = -7
	at := func(snr float64) vtime.Metres { // distance with this SNR
		return vtime.Metres(math.Pow(10, (15-40.05+95-snr)/33))
	}
	edge := float64(decode) - 7
	ch := mustChannel(t, 1, r, mac, []Position{{0, 0}, {at(edge + 0.01), 0}, {-at(edge - 0.01), 0}})
	if !ch.Senses(0, 1) || ch.Senses(0, 2) || !ch.Senses(1, 0) || ch.Senses(2, 0) {
		t.Errorf("node 0 senses 1: %v, 2: %v; want true, false", ch.Senses(0, 1), ch.Senses(0, 2))
	}
	mac.Rate = 2 * mbit // a lower rate decodes, thus senses, farther
	ch = mustChannel(t, 1, r, mac, []Position{{0, 0}, {at(edge + 0.01), 0}, {-at(edge - 0.01), 0}})
	if !ch.Senses(0, 2) {
		t.Error("at 2 Mb/s the threshold must lie lower")
	}
}

func TestShadowingIsSeededPerPair(t *testing.T) {
	r := DefaultRadio()
	r.Shadowing = 6
	mac := DefaultMAC(StandardB)
	pos := scatter(60, 300)
	ch := mustChannel(t, 1, r, mac, pos)
	fewer := mustChannel(t, 1, r, mac, pos[:40])
	other := mustChannel(t, 2, r, mac, pos)
	r.Shadowing = 0
	plain := mustChannel(t, 1, r, mac, pos)
	var sum, sq, cross float64
	n := 0.0
	for i := range pos {
		for j := range pos {
			if i == j {
				continue
			}
			if ch.SNR(i, j) != ch.SNR(j, i) {
				t.Fatalf("pair %d, %d is not symmetric", i, j)
			}
			if i < 40 && j < 40 && ch.SNR(i, j) != fewer.SNR(i, j) {
				t.Fatalf("pair %d, %d depends on the number of nodes", i, j)
			}
			x := float64(ch.SNR(i, j) - plain.SNR(i, j))
			sum += x
			sq += x * x
			cross += x * float64(other.SNR(i, j)-plain.SNR(i, j))
			n++
		}
	}
	if mean, sd := sum/n, math.Sqrt(sq/n); math.Abs(mean) > 6*4/math.Sqrt(n/2) || math.Abs(sd-6) > 0.6 {
		t.Errorf("shadowing: mean %.2f dB, deviation %.2f dB, want 0, 6", mean, sd)
	}
	if c := cross / sq; math.Abs(c) > 4/math.Sqrt(n/2) {
		t.Errorf("two seeds correlate by %.3f", c)
	}
}

func TestFloorBoundsTheNeighbours(t *testing.T) {
	mac := DefaultMAC(StandardB)
	pos := scatter(300, 4000)
	ch := mustChannel(t, 1, DefaultRadio(), mac, pos)
	for i := range pos {
		for j := range pos {
			_, l := ch.find(i, j)
			if want := i != j && ch.SNR(i, j) >= DefaultFloor; want != (l != nil) {
				t.Fatalf("link %d→%d at %.1f dB listed: %v", i, j, ch.SNR(i, j), l != nil)
			}
		}
	}
	quiet := DefaultRadio()
	quiet.Sense = -30 // the floor never lies above the sense threshold
	ch = mustChannel(t, 1, quiet, mac, pos)
	decode, _ := DecodeSNR(mac, mac.Rate)
	for i := range pos {
		for j := range pos {
			if i != j && ch.SNR(i, j) >= decode-30 && !ch.Senses(j, i) {
				t.Fatalf("link %d→%d at %.1f dB is not sensed", i, j, ch.SNR(i, j))
			}
		}
	}
}

// TestDeliveryIsWhatHappens compares Delivery with frames sent.
func TestDeliveryIsWhatHappens(t *testing.T) {
	mac := DefaultMAC(StandardB).LegacyDCF()
	mac.Queues[BE].Ack = AckNone
	for _, n := range []vtime.Bytes{100, 1500} {
		for _, db := range []float64{6, 6.8, 7.2, 7.6, 8, 9} {
			d := vtime.Metres(math.Pow(10, (15-40.05+95-db)/33))
			ch := mustChannel(t, 1, DefaultRadio(), mac, []Position{{0, 0}, {d, 0}})
			l := newLab(t, 3, ch, mac)
			l.saturate(0, 1, BE, n, 3)
			l.run(20 * sec)
			sent := float64(l.outcomes[0][Sent])
			got := float64(l.delivered[0][1]) / sent
			want := ch.Delivery(0, 1, n, 11*mbit)
			if math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/sent)+1e-4 {
				t.Errorf("%d bytes at %.1f dB: %.4f of %.0f frames delivered, Delivery says %.4f", n, db, got, sent, want)
			}
		}
	}
}

func TestDeliveryFallsWithDistanceRateAndLength(t *testing.T) {
	mac := DefaultMAC(StandardB)
	var pos []Position
	for i := 0; i < 40; i++ {
		pos = append(pos, Position{vtime.Metres(50 + 2*i), 0})
	}
	pos[0].X = 0
	ch := mustChannel(t, 1, DefaultRadio(), mac, pos)
	between := 0
	for i := 1; i < len(pos); i++ {
		p := ch.Delivery(0, i, 1500, 11*mbit)
		if i > 1 && p > ch.Delivery(0, i-1, 1500, 11*mbit) {
			t.Errorf("delivery rises with distance at %v", pos[i].X)
		}
		if p > ch.Delivery(0, i, 1500, 2*mbit) || p > ch.Delivery(0, i, 100, 11*mbit) {
			t.Errorf("at %v: 1500 B at 11 Mb/s arrive more surely than at 2 Mb/s or 100 B", pos[i].X)
		}
		if p > 0.02 && p < 0.98 {
			between++
		}
	}
	if ch.Delivery(0, 1, 1500, 11*mbit) < 0.999 || ch.Delivery(0, len(pos)-1, 1500, 11*mbit) > 0.001 || between == 0 {
		t.Errorf("delivery should go from 1 to 0 with values between")
	}
	if ch.Delivery(0, 1, 1500, 54*mbit) != 0 || ch.Delivery(0, 0, 1500, 11*mbit) != 0 {
		t.Error("a rate that 802.11b lacks, or a node's own frames: want 0")
	}
}

func TestDiskRanges(t *testing.T) {
	mac := DefaultMAC(StandardB)
	ch := mustChannel(t, 1, DiskRadio(250, 550), mac, []Position{{0, 0}, {250, 0}, {250.1, 1}, {550, 0}, {551, 0}})
	for i, want := range []struct {
		delivery float64
		senses   bool
	}{{0, false}, {1, true}, {0, true}, {0, true}, {0, false}} {
		if got := ch.Delivery(0, i, 1500, 11*mbit); got != want.delivery || ch.Senses(0, i) != want.senses {
			t.Errorf("node %d: delivery %v, senses %v, want %+v", i, got, ch.Senses(0, i), want)
		}
	}
	if m := float64(ch.SNR(0, 1)); math.Abs(m) > 1e-9 {
		t.Errorf("margin at the range %.2f dB, want 0", m)
	}
	if m := float64(ch.SNR(0, 3)); math.Abs(m-(-40*math.Log10(2.2))) > 1e-9 {
		t.Errorf("margin at 550 m %.2f dB", m)
	}
}

func TestMatrix(t *testing.T) {
	d := [][]float64{{0, 0.7, 0}, {1, 0, 0}, {0, 0, 0}}
	ch, err := NewMatrixChannel(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ch.N() != 3 || ch.Delivery(0, 1, 1500, 11*mbit) != 0.7 || ch.Delivery(1, 0, 1500, 11*mbit) != 1 || ch.Delivery(0, 2, 1500, 11*mbit) != 0 {
		t.Error("delivery is not the matrix")
	}
	if !ch.Senses(1, 0) || !ch.Senses(0, 1) || ch.Senses(2, 0) {
		t.Error("sensing should follow delivery")
	}
	sense := [][]bool{{false, false, true}, {false, false, false}, {false, false, false}}
	ch, err = NewMatrixChannel(d, sense, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ch.Senses(1, 0) || !ch.Senses(2, 0) {
		t.Error("sensing should follow its matrix")
	}
	mac := DefaultMAC(StandardB)
	mac.Queues[BE].Ack = AckNone
	l := newLab(t, 1, ch, mac)
	l.saturate(0, 1, BE, 1500, 3)
	l.run(20 * sec)
	sent := float64(l.outcomes[0][Sent])
	if got := float64(l.delivered[0][1]) / sent; math.Abs(got-0.7) > 5*math.Sqrt(0.21/sent) {
		t.Errorf("%.4f delivered, want 0.7", got)
	}
}

func TestBadChannelsAreRefused(t *testing.T) {
	mac := DefaultMAC(StandardB)
	pos := []Position{{0, 0}, {5, 0}}
	radio := func(change func(r *Radio)) error {
		r := DefaultRadio()
		change(&r)
		_, err := NewChannel(1, r, mac, pos)
		return err
	}
	none := [][]float64{{0, 1}, {1, 0}}
	for want, err := range map[string]error{
		"exponent 0":                  radio(func(r *Radio) { r.Exponent = 0 }),
		"noise is NaN":                radio(func(r *Radio) { r.Noise = vtime.DBm(math.NaN()) }),
		"shadowing -1dB":              radio(func(r *Radio) { r.Shadowing = -1 }),
		"capture threshold -3dB":      radio(func(r *Radio) { r.Capture = -3 }),
		"floor 3dB":                   radio(func(r *Radio) { r.Floor = 3 }),
		"range 100m, sense range 50m": radio(func(r *Radio) { r.Range, r.SenseRange = 100, 50 }),
		"without a range":             radio(func(r *Radio) { r.SenseRange = 50 }),
		"lower the transmit power":    radio(func(r *Radio) { r.TxPower = 200 }),
		"no positions":                second(NewChannel(1, DefaultRadio(), mac, nil)),
		"matrix is empty":             second(NewMatrixChannel(nil, nil, nil)),
		"row 1 of the delivery":       second(NewMatrixChannel([][]float64{{0, 1}, {1}}, nil, nil)),
		"delivery[0][1] = 1.5":        second(NewMatrixChannel([][]float64{{0, 1.5}, {1, 0}}, nil, nil)),
		"the sense matrix has 1 rows": second(NewMatrixChannel(none, [][]bool{{false}}, nil)),
		"row 0 of the interfere":      second(NewMatrixChannel(none, nil, [][]bool{{false}, {true, false}})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	ch := mustChannel(t, 1, DefaultRadio(), mac, pos)
	for want, macs := range map[string][]MAC{
		"3 MAC configurations for 2 nodes": {mac, mac, mac},
		"0 MAC configurations":             {},
		"node 1 speaks 802.11g":            {mac, DefaultMAC(StandardG)},
		"node 0 speaks 802.11a":            {DefaultMAC(StandardA)},
		"node 0: retry limit -1":           {func() MAC { m := mac; m.Retries = -1; return m }()},
	} {
		if _, err := NewMedium(des.New(), 1, ch, macs, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
