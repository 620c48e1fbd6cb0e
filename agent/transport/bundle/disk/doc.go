// Package disk keeps the bundles of one node's part in one flow in a directory: a
// file for each, written beside its place, synced, and renamed into it, so that
// after a crash a bundle is there whole or not at all.
//
// It must not know how bundles travel, nor what is in them beyond the bundle
// protocol.
package disk
