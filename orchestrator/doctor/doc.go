// Package doctor says what this host can do for hopbed, and for each lack what
// it costs and what to do about it. Its probes make things only in namespaces
// of their own and leave nothing.
//
// It must not know experiments or results.
package doctor
