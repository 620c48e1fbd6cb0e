// Package lane runs a program as root in a Linux kernel of the distribution's
// under QEMU: for what the host's kernel lacks (netem, simulated radios), and
// without any risk to the host's own network. The kernel is fetched once, from
// the host's package archive. It must not know what it runs; package lanetest
// runs the tests of a package in it.
package lane
