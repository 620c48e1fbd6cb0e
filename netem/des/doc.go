// Package des is the discrete-event engine of hopbed: a heap of events ordered
// by (virtual time, insertion number), a hash of everything that was fired, and
// named random streams.
//
// It knows virtual time only. It must not know what the events mean, read the
// wall clock, start goroutines or touch the global random source: equal seeds
// and equal calls give equal traces on every architecture. The wall-clock driver
// lives in des/pace.
package des
