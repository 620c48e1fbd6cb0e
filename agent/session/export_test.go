//go:build linux

package session

// ReadOffloads reads the segmentation offloads of an interface.
var ReadOffloads = readOffloads
