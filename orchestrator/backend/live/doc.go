// Package live carries runs out on nodes that exist: agents in network
// namespaces over the paced medium, or on real hosts (DESIGN.md). It follows one
// order: start the nodes, compare their clocks, join them, configure, read back and
// compare, start the flows on one schedule, sample, stop, collect, revert, and make
// sure that nothing is left.
//
// It must not know how a node is reached (orchestrator/node) nor what a flow
// does (the agent's transports); it gives orders and keeps what comes back.
package live
