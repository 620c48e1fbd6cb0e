// Package bundle is a bundle relay as state machines: bundle protocol version 7
// (RFC 9171) over the TCP convergence layer version 4 (RFC 9174), hop by hop,
// with store and forward at every node. It stands in for DTN2.5, the fourth
// transport of the Hop paper's experiments (Li et al., NSDI 2009), and is not
// DTN2.5: see DESIGN.md beside this file for what it implements of the RFCs,
// what it leaves out, and its parameters.
//
// It must not know a clock, a socket, a file, a goroutine or a workload: a
// driver hands in messages and the time, asks for messages to send, for what to
// write to disk and for the next deadline. One Node is one node's part in one
// flow. In virtual time payloads are lengths without bytes (Zeros), and messages
// travel as values instead of octets; every length is that of the octets.
package bundle
