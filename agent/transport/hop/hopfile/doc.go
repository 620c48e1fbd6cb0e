// Package hopfile moves files over hopnet streams: Send offers one and sends it,
// a Receiver takes them into a folder. A file appears there under its name only
// when all of it is there and its SHA-256 is right; a transfer that was broken off
// goes on where it stopped.
//
// What a sender may do to a Receiver is bounded: names are those of files in the
// folder and not hidden, nothing is overwritten, sizes and the number of transfers
// at once have a limit. It must not know command lines nor how progress is shown.
package hopfile
