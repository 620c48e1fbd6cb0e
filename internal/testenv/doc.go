// Package testenv tells tests what this host can do. A test that needs more
// says so with Need and is skipped with exactly one typed reason, printed as
// SKIP[reason], so that skips can be counted and bounded.
//
// It imports nothing of hopbed, so that every package's tests can use it.
package testenv
