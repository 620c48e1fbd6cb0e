// Package lab keeps an emulated network standing for work by hand: a keeper
// process that holds it, the socket on which it takes orders (run a program in a
// node, change links and radios, take everything down), and the client's side of
// both. DESIGN.md beside this file says which process does what, and what happens
// when one of them is killed.
//
// It must not know how a network is made: the keeper is given one. It takes orders
// from its own user only, and nothing that it is told ever reaches a shell.
package lab
