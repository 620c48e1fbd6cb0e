// Package library holds the experiments that are shipped with hopbed, as the
// files that a user would write, and the pages that explain their choices.
//
// It is data: it must not know how a file is read, checked or run.
package library
