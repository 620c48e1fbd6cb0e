package coop

import (
	"bytes"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Port is the UDP port to which beacons are broadcast and at which they arrive.
const Port = 4412

// DSCP is the beacons' code point, CS6: the access category of voice. A beacon that
// waited behind the station's own data would come when the data's queue lets it,
// and the number of stations would be known as late as the round-trip time is long.
// The paper does not say.
const DSCP = 48

// beacon is what a station says: that it is transmitting, in the first version of
// these words. Who it is says the source address.
var beacon = []byte("hbco\x00\x01tx")

// BeaconLen is the length of a beacon as an IP packet.
var BeaconLen = vtime.Bytes(28 + len(beacon))

// Beacon is what follows the UDP header of a beacon.
func Beacon() []byte { return bytes.Clone(beacon) }

// IsBeacon reports whether what came to the port, the bytes after the UDP header,
// is a beacon.
func IsBeacon(b []byte) bool { return bytes.Equal(b, beacon) }
