// Package emulator is the process that puts real frames on the emulated
// medium and on wired links: it holds every TAP device of every node, runs the
// 802.11 medium and the pipes paced by the clock, publishes the transmit queues
// on the board, and reports how well it kept time. The package has both sides:
// the process's main function and the client through which a controller runs it.
//
// It must not know transports, routes or experiments: it sees frames between
// nodes. DESIGN.md beside this file says why it is as it is and what was
// measured.
package emulator
