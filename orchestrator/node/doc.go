// Package node is how the controller reaches nodes: the interface that a driver
// (namespaces, SSH) implements, and what a started node looks like. It must not
// know any driver: the command's main package holds the table of them.
package node
