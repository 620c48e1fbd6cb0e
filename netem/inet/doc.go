// Package inet lays out IPv4, UDP and TCP headers with their checksums, for
// packets that exist as objects only and have to be shown as bytes. It must not
// know who sends them or why, and it does no I/O.
package inet
