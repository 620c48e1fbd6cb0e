// Package hop is the Hop protocol of "Block-switched Networks: A New Paradigm
// for Wireless Transport" (Li, Agrawal, Ganesan, Venkataramani; NSDI 2009) as
// state machines: reliable per-hop transfer of blocks, backpressure, ack
// withholding, round robin by txop, virtual retransmission and micro-blocks.
//
// It must not know a clock, a socket, a goroutine or a medium: a driver hands
// in packets and the time, asks for packets to send and for the next deadline,
// and tells it how much of the MAC's queues is free. It imports netem/vtime
// and the standard library only. DESIGN.md beside this file is the wire
// format and the protocol's specification.
package hop
