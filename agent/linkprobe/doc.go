// Package linkprobe measures links by broadcast probes, as ETX does (De Couto,
// Aguayo, Bicket, Morris, MobiCom 2003, section 3) and olsrd's link quality over
// RFC 3626's link sensing: every node sends numbered probes at a jittered period
// and counts those of the others. Prober is a state machine without clock, goroutine
// or socket; probenode runs it over an interface, the sim back end in virtual time.
//
// It counts. What the counts say about a link is not its business, and it must
// not know routes, flows or an experiment.
package linkprobe
