// Package transport is what the agent knows of every transport: the interface
// that a driver over real sockets implements, and the explicit table in which
// a flow's transport is looked up. Adding a transport is one package and one
// line in the table that the agent is given.
//
// It must not know any particular transport, nor how the controller is spoken
// to.
package transport
