// Package inventory reads the file that lists the real nodes of a lab: how each
// is reached, and which radio it has. Mistakes carry file, line and column. It
// must not know SSH, experiments or back ends.
package inventory
