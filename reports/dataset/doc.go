// Package dataset turns what the store holds of a campaign into what reports
// compare: for each set of conditions one series per transport, with its valid
// repetitions, and what stands beside them (runs left out, airtime, topology,
// goodput over time).
//
// It decides what may be compared and what must not: back ends are never
// pooled, invalid runs never counted, repetitions paired only when they met
// the same seed. It reads through the store and must not know how anything is
// drawn or written.
package dataset
