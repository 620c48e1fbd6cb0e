// Package vtime holds the units of hopbed: virtual time, durations, bit rates,
// bytes, decibels, metres and fractions, with one textual form each.
//
// It is the leaf of the dependency graph: every protocol and every medium is
// written in these types, so that no state machine ever needs a clock. It
// imports nothing but the standard library and must never read the wall clock.
package vtime
