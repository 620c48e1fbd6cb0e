// Package journal records on disk what a run is about to create, before it is
// created, so that what a killed controller left can be removed exactly and
// nothing else can. Each controller has a file of its own, locked as long as it
// lives; the file vanishes when everything it names is gone.
//
// It must not know drivers: it knows processes by their identity and ownership
// tag, and files by their path.
package journal
