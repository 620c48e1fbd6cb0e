// Package sock drives transports over the kernel's sockets: TCP flows with a
// congestion control per socket, UDP flows, and the Hop protocol over UDP. It
// owns the clock's use, goroutines and system calls that the protocols'
// state machines do without.
//
// It must not know how the controller is spoken to nor how the node was
// configured.
package sock
