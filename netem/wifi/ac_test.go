package wifi

import "testing"

// The WMM map on the precedence bits, and expedited forwarding (RFC 8325).
func TestCategoryOf(t *testing.T) {
	for dscp, want := range map[uint8]AC{
		0: BE, 8: BK, 16: BK, 24: BE, 32: VI, 40: VI, 48: VO, 56: VO,
		46: VO, 10: BK, 34: VI, 44: VI,
	} {
		if got := CategoryOf(dscp); got != want {
			t.Errorf("DSCP %d is %v, want %v", dscp, got, want)
		}
	}
}
