// Package broadcast opens UDP sockets for what a node says to all its neighbours
// at once: link probes, beacons. It must not know what is said.
package broadcast
