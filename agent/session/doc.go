// Package session carries out the controller's orders on one node: it makes
// the namespace or host into the experiment's node, reads everything back and
// compares it, runs the flows on the common schedule, streams samples, and in
// the end, whatever happened, puts back what it changed. When the controller
// vanishes the session ends by itself.
//
// It must not know experiments, other nodes or how the agent was started. It
// touches no interface but those that it was told, a bridge of its own, and lo.
package session
