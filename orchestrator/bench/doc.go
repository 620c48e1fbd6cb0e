// Package bench measures what this host can emulate: how many frames a second
// the live medium carries and how late it is (Medium), and how long namespaces
// take to come and go (Nodes). It prints tables; nothing here passes or fails.
//
// It must not know experiments or the store. Its traffic comes from a small
// part of this program that runs in every node (Part), not from the agent, so
// that the figures are those of the medium.
package bench
