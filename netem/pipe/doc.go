// Package pipe is a one-way link for the event engine, the equivalent of a
// Dummynet pipe: loss, a finite queue, a rate (fixed, scheduled or a Mahimahi
// trace), propagation delay with jitter, reordering and duplication, each
// exact to the nanosecond of virtual time and each from a random stream of
// its own. It must not know what its packets carry, what a transport is, or
// the wall clock; a live driver paces the engine and feeds it frames.
package pipe
