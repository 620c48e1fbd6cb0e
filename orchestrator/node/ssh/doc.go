// Package ssh is the node driver of real nodes: every agent runs on a node of the
// inventory, as a program of one SSH session whose standard input and output are
// the agent's. Connections outlive a run; agents do not.
//
// It must not know the protocol, radios or experiments, nor how a connection is
// made.
package ssh
