// Package agents brings the agent's program to nodes: it finds or builds the one
// for a node's processor, uploads it where the node has another one or none, and
// says what keeps it from running there. Nodes need a POSIX shell and what BusyBox
// has; neither sftp nor scp.
//
// It must not know what agents are told to do.
package agents
