// Package relay is Hop-by-Hop TCP, the third transport of the Hop paper's
// high-load experiment: each hop is a TCP connection of its own, and a relay
// joins two of them through a buffer that stops reading when it is full, so
// that backpressure reaches the source hop by hop (Li et al., NSDI 2009, §5.3).
//
// DESIGN.md says how a hop is set up, what bounds a relay, and how flows end. The
// package must not know routing: a flow's path comes with the flow.
package relay
