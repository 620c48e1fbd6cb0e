// Package simnet is the network of one run in virtual time: IP packets that
// are forwarded hop by hop over the 802.11 medium and over wired links, or
// passed on by bridges, and the ends of the flows: model TCP end to end or hop
// by hop, UDP, and Hop (through simhop). It does what namespaces, kernels and
// agents do in a live run, with the same orders and the same accounts
// (agent/proto).
//
// It must not know experiment files, how results are stored, or any clock but
// the engine's: a run is a function of its configuration, on one thread.
package simnet
