// Package wifi is the 802.11 medium of hopbed in virtual time: transmission
// times of 802.11b, g and a, error models, the EDCA/DCF state machine of every
// node and the shared channel between them (who decodes, who senses, who
// interferes).
//
// The same state machine serves the sim back end (model frames) and the live
// one (real frames behind TAP devices). It is driven by des events alone: it
// must not know TAP devices, namespaces, IP routing or the wall clock. The rules
// that were chosen, and what is not modelled, are in DESIGN.md.
package wifi
