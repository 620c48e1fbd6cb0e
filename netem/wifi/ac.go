package wifi

import (
	"fmt"
	"strings"
)

// AC is an access category of EDCA (IEEE 802.11-2012 9.2.4.2), in ascending
// priority.
type AC uint8

// The access categories.
const (
	BK AC = iota // background
	BE           // best effort
	VI           // video
	VO           // voice
)

// NumAC is the number of access categories, thus of queues per node.
const NumAC = 4

var acNames = [NumAC]string{"bk", "be", "vi", "vo"}

// String returns the name used in experiment files: bk, be, vi, vo.
func (a AC) String() string {
	if int(a) < NumAC {
		return acNames[a]
	}
	return fmt.Sprintf("ac%d", uint8(a))
}

// ParseAC reads "bk", "be", "vi" or "vo" in any case, with or without the
// prefix "AC_".
func ParseAC(s string) (AC, error) {
	name := strings.TrimPrefix(strings.ToLower(s), "ac_")
	for a, n := range acNames {
		if n == name {
			return AC(a), nil
		}
	}
	return 0, fmt.Errorf("access category %q is unknown, want one of %s", s, strings.Join(acNames[:], ", "))
}

// ef is the DSCP of expedited forwarding (RFC 3246).
const ef = 46

// CategoryOf maps a DSCP to the access category, by the precedence bits as WMM
// does (802.11-2020 table 10-1 for the user priority): CS1, CS2 → background;
// CS0, CS3 → best effort; CS4, CS5 → video; CS6, CS7 → voice. Expedited
// forwarding is voice (RFC 8325 4.1), whatever its precedence bits say.
func CategoryOf(dscp uint8) AC {
	if dscp == ef {
		return VO
	}
	return [8]AC{BE, BK, BK, BE, VI, VI, VO, VO}[dscp>>3&7]
}

// AckPolicy says whether the frames of a queue are acknowledged (802.11-2012
// 8.2.4.5.4).
type AckPolicy uint8

// The acknowledgement policies.
const (
	AckNormal AckPolicy = iota // ACK after SIFS, retransmission without it
	AckNone                    // sent once; the sender never learns the outcome
)

// String returns the name used in experiment files.
func (p AckPolicy) String() string {
	switch p {
	case AckNormal:
		return "normal"
	case AckNone:
		return "none"
	}
	return fmt.Sprintf("ackpolicy%d", uint8(p))
}

// ParseAckPolicy reads "normal" or "none".
func ParseAckPolicy(s string) (AckPolicy, error) {
	switch strings.ToLower(s) {
	case "normal":
		return AckNormal, nil
	case "none":
		return AckNone, nil
	}
	return 0, fmt.Errorf("acknowledgement policy %q is unknown, want normal or none", s)
}
