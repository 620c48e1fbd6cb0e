// Package radiotest is what tests of radio drivers share: the conformance test
// that every driver passes, MadWifi's tools as an executable that keeps state
// and refuses what the driver refuses, and an nl80211 of one phy. It must not be
// part of any program.
package radiotest
