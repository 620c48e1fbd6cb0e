// Package celltrace makes delivery opportunities of a cellular data link: the
// HSDPA downlink and the E-DCH uplink of a UMTS cell, from a documented model
// and a seed. Equal parameters give the same opportunities on every machine.
//
// It must not know who uses them: packets, queues and transports are not its
// business, and it has no clock and no I/O. DESIGN.md has the model, its sources
// and what it leaves out.
package celltrace
