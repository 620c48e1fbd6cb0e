//go:build linux

// Command kernel-lane runs a program in a distribution's kernel under QEMU.
package main
