// Package netdump reads tables of the kernel as a whole. It must not know which
// tables.
package netdump
