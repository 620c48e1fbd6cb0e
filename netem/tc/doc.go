// Package tc makes the kernel emulate a link: netem, tbf and htb through
// netlink, for all of an interface's traffic or for each destination, outgoing
// and, by an ifb device, incoming. What was set is read back and compared. It
// must not know experiments; the same settings for this program's own emulator
// are netem/pipe's.
package tc
