// Package simhop drives Hop over the 802.11 medium in virtual time: it carries
// the packets of hop.Node as frames of wifi.Medium and fires their timers as
// events of des.Engine.
//
// It must not know experiments, routes' origin or how results are stored: the
// sim back end brings those. It knows no clock but the engine's.
package simhop
