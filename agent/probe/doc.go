// Package probe reads what the kernel knows about a run: a connection's
// TCP_INFO, the protocol counters of the namespace, the agent's own processor
// time and how far the host was starved.
//
// It only reads. It must not know flows, transports or the protocol to the
// controller beyond the records that it fills.
package probe
