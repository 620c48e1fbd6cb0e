// Package capture writes down what a medium and its pipes do: as a pcapng file
// that Wireshark reads, with radiotap and 802.11 headers for the radio and plain
// IP for wired links, and as a log of one readable line an event. It watches by
// the monitors of wifi and pipe, so that a captured run is the same as one that
// is not. It does not know how packets came to be: in virtual time somebody else
// gives their bytes. CAPTURE.md says what the files hold.
package capture
