// Package coop is the cooperative congestion control against the build-up of
// acknowledgements at a wireless access point (Hayakawa, Yamaguchi, Oguchi, DEIM
// 2015, C2-2): stations tell each other by broadcasts that they are transmitting,
// and when the round-trip time has grown they cap their congestion windows at an
// equal share of what the access point carries. The congestion control itself
// stays as it is.
//
// Station is a state machine without clock, goroutine or socket. It must not know
// how a beacon travels, how a cap is set, nor an experiment.
package coop
