// Package backend is the interface between a campaign and what carries its
// runs out: virtual time (sim) or live nodes (live). It also holds what every
// back end does alike: laying a scenario out as records of the store, the
// orders of its flows, and turning the nodes' accounts and the medium's
// counters into rows.
//
// It must not know any back end: the command's main package holds the table of
// them.
package backend
