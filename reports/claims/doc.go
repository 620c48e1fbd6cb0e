// Package claims holds what papers state against what our campaigns show: each
// statement names a measure, a Go function from the valid repetitions of a
// campaign to a value with its interval, and the threshold that the value must
// fulfil. The measures stand in one table, with one file for each paper.
//
// It must not know how results came about, where published values are kept as
// files, nor how a verdict is written; it opens no database of its own.
package claims
