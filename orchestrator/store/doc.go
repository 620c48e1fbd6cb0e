// Package store keeps the results of hopbed in one SQLite file: campaigns,
// their runs, and for each run its nodes, links, flows, samples, counters,
// wired links, events and artifacts.
//
// A run arrives in one transaction or not at all. The package is the only one
// that knows SQL; it must not know how results are made (back ends, agents) or
// what is concluded from them (statistics, reports).
package store
