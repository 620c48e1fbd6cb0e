// Package proto is the versioned protocol between the controller and a node's
// agent: JSON objects, one a line, over any pair of byte streams (the agent's
// stdin and stdout, an SSH channel). It defines every message, the bounded and
// strict codec, the controller's side (Client) and the agent's side (Server).
//
// It is pure: it must not know processes, sockets or files, nor how an order
// is carried out. Both sides of the project import it.
package proto
