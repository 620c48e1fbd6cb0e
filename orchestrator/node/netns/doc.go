// Package netns is the node driver of network namespaces: every node is an
// agent process of its own in a new, private namespace, started by
// re-executing this program, spoken to over its standard input and output, and
// gone when the driver is closed or the controller dies.
//
// It must not know the protocol, the medium or the experiment. It touches
// nothing outside the namespaces that it made.
package netns
