//go:build linux

// Package route sets and compares the routes and permanent neighbours of a
// node's interfaces, and the static forwarding table of its bridge, through
// netlink, hundreds to a system call, and puts back what it replaced. It also
// makes the kernel obey the caps of congestion windows that routes have (Caps).
//
// It must not know the experiment, flows or transports, and it never changes
// an entry of another interface, except that a route that it has to replace is
// put back by the revert, and that Caps uses a local route on lo for a moment.
package route
