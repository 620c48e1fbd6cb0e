// Package stats holds the statistics of hopbed's reports: quartiles, Jain's
// index, the empirical distribution with its band, bootstrap intervals that
// resample whole repetitions, and tests of two distributions that exchange them. Every estimate comes with the warnings that a reader needs
// in order not to take it for more than it is.
//
// It works on plain numbers and must not know where they come from (runs,
// flows, the database) nor how they are shown. Equal input and seed give equal
// output.
package stats
