// Package tshark lets tests look at a capture with Wireshark's own eyes: it runs
// tshark, where it is installed, and skips with a typed reason elsewhere. It must
// not be imported by anything but tests.
package tshark
