// Package sim is the back end of virtual time: a run is laid out over the
// 802.11 medium of netem/wifi and the wired links of netem/pipe on the event
// engine of netem/des, with the model TCP, Hop and UDP of simnet at its ends,
// and carried out on one thread, as fast as the processor allows. Equal scenarios
// give equal records and equal trace hashes, on every architecture.
//
// It needs no privilege and no particular operating system. It must not read
// a clock or start a goroutine: what a run gives is a function of its scenario.
package sim
