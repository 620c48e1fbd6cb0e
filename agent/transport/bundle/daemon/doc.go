// Package daemon runs the nodes of package bundle over kernel TCP: the driver of
// "bundle/CC". Each flow has a chain of nodes of its own along its path, a port at
// each of them, and a connection with the congestion control CC for each hop.
//
// It must not know routing: a flow's path comes with the flow.
package daemon
