// Package winrewrite is the window-rewriting access point of Pilosof et al.
// (INFOCOM 2003, section 5) as a filter on the packets that pass a queue: it
// counts the TCP connections that share a buffer, and bounds the receiver
// window in their segments so that the packets of all of them fit into it.
//
// It is a state machine: the time is an argument, and it does no I/O. It knows
// IP packets, and TCP segments that exist as objects only; it must not know
// whose queue it serves, the medium, experiment files or any clock.
package winrewrite
