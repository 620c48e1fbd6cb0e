//go:build linux

// Command guest is the first process of the kernel lane's guest: it mounts what
// programs expect, loads the modules, runs the one program that it was told to,
// and ends the machine with its status.
package main
