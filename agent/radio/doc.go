// Package radio sets the parameters of a node's 802.11 interface through its
// driver's own tools, reads every one back, and says which could not be
// verified. One interface, one file a driver, one conformance test for all. It
// must not know experiments or the protocol that carries its configuration.
package radio
