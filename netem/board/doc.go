// Package board is the queue board: shared memory in which the emulator
// publishes, per radio and access category and per direction of a pipe, how many
// frames arrived, left and wait, with one eventfd per node that wakes the agent
// when a watched queue has drained. A TAP device never pushes back on its sender,
// so a transport that must know the free space of a queue reads it here.
//
// It must not know frames, protocols or the medium: it holds numbers only.
package board
