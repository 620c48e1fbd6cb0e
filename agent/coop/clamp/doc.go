// Package clamp bounds the congestion windows of this process's TCP sockets while
// they are connected, by a program in the kernel (BPF, "sockops"). It is for
// Linux; elsewhere, and where the kernel refuses, New returns an error of
// proto.CodeUnavailable that says why.
//
// It must not know why a window is bounded, nor a flow or an experiment.
package clamp
