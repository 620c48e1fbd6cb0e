// Package check says of every node of a lab whether experiments can use it, and what
// to do where they cannot. It looks and changes nothing.
//
// It must not know experiments.
package check
