// Package sshns is the node driver of network namespaces that are reached over SSH:
// in each runs an OpenSSH server of its own, and everything from the login to the
// end of an agent goes the way that it goes on real nodes. No management network
// exists: the controller's connections begin inside the namespaces, at their
// loopback, so that nothing of them is on an emulated link.
//
// It must not know the protocol, the medium or the experiment.
package sshns
