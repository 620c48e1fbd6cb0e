// Package undo is how an agent puts back what it changed, whatever ends it: each
// change is first told, as data, to a guardian process that outlives the agent
// and to a file that outlives both. See DESIGN.md.
//
// It must not know what the changes are for: who makes a kind of change says, in
// a table, how it is taken back.
package undo
