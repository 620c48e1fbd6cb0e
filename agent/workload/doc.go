// Package workload describes what an application asks of a flow and what it
// makes of the data that arrives: sources (continual, sized, poisson, trace,
// voip, web), the receipts of the messages that some of them send, the content
// pattern by which every byte is verified, and the meter that counts delivered
// bytes between the end of the warm-up and the end of the run.
//
// It is pure: it knows times and the random streams of virtual time only. It
// must not know sockets, clocks or protocols, so that the same workloads run in
// virtual time and over kernel sockets.
//
// # Messages
//
// The data of all kinds but continual and sized are messages, back to back in
// the stream of the flow. When they become ready and how long they are is a
// schedule that both ends compute from the Spec and the flow's start and stop:
// nothing about it travels. Schedules are made as they are needed, a few words of
// state whatever the length of the run.
//
// A web exchange is two flows, since what its ends send depends on what they
// received: the sequence of objects is a schedule, the moments are not. A driver
// that has both flows of the exchange at a node tells the source of the one
// what was received of the other (Source.Heard).
package workload
