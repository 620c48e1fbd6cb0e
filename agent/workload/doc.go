// Package workload describes what an application asks of a flow and what it
// makes of the data that arrives: sources (continual, sized), the content
// pattern by which every byte is verified, and the meter that counts delivered
// bytes between the end of the warm-up and the end of the run.
//
// It is pure: it knows vtime only. It must not know sockets, clocks or
// protocols, so that the same workloads run in virtual time and over kernel
// sockets.
package workload
