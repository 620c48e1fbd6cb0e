// Package program runs external programs as transports: iperf3, iperf2, and any
// program with a small output contract (exec). It owns their processes, which it
// ends with the flow or with itself, and makes their words into the results and
// samples of every other transport.
//
// It must not know how the controller is spoken to nor how the node was
// configured. What a program says is not trusted: it is bounded, parsed
// tolerantly, and compared with what the node's interfaces counted.
package program
