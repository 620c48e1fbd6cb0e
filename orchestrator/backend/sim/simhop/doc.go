// Package simhop drives Hop in virtual time: it hands the packets of hop.Node to
// a Carrier, which takes them over radio and pipes, and fires their timers as
// events of des.Engine.
//
// It must not know experiments, routes' origin or how results are stored: the
// sim back end brings those. It knows no clock but the engine's.
package simhop
