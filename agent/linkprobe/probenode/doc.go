// Package probenode runs link probes over an interface of this host: the sockets
// and the clock of linkprobe's state machine. It must not know what the counts
// are for.
package probenode
