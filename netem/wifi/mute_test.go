package wifi

import (
	"math"
	"strings"
	"testing"
)

// TestMuteNodes: nobody hears a node without a radio, it hears nobody, its
// place is of no matter, and all other pairs are as they would be with it.
func TestMuteNodes(t *testing.T) {
	mac := DefaultMAC(StandardB)
	shadowed := DefaultRadio()
	shadowed.Shadowing = 7
	for name, r := range map[string]Radio{"log-distance": shadowed, "disk": DiskRadio(40, 80)} {
		pos := scatter(12, 60)
		all := mustChannel(t, 4, r, mac, pos)
		pos[3], pos[7] = pos[0], pos[0] // on top of another: no signal of theirs is too strong
		some, err := NewChannel(4, r, mac, pos, 3, 7)
		if err != nil {
			t.Fatal(err)
		}
		heard := 0
		for i := range pos {
			for j := range pos {
				mute := i == 3 || i == 7 || j == 3 || j == 7
				switch {
				case i == j:
				case mute:
					if some.Senses(i, j) || some.Delivery(i, j, 100, mac.BasicRate) != 0 || !math.IsInf(float64(some.SNR(i, j)), -1) {
						t.Errorf("%s: %d and %d: senses %v, delivery %v, SNR %v", name, i, j, some.Senses(i, j), some.Delivery(i, j, 100, mac.BasicRate), some.SNR(i, j))
					}
				default:
					if some.Senses(i, j) {
						heard++
					}
					if some.Senses(i, j) != all.Senses(i, j) || some.SNR(i, j) != all.SNR(i, j) || some.Delivery(i, j, 1500, mac.Rate) != all.Delivery(i, j, 1500, mac.Rate) {
						t.Errorf("%s: %d and %d are not as without mute nodes", name, i, j)
					}
				}
			}
		}
		if heard == 0 {
			t.Errorf("%s: nobody hears anybody", name)
		}
	}
	for _, i := range []int{-1, 12} {
		if _, err := NewChannel(1, shadowed, mac, scatter(12, 60), i); err == nil || !strings.Contains(err.Error(), "cannot be mute") {
			t.Errorf("mute node %d: %v", i, err)
		}
	}
}
