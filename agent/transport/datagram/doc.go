// Package datagram is a UDP socket for transports that send and receive many
// datagrams at a time: on Linux one system call takes or hands over a whole
// batch (recvmmsg, sendmmsg), and consecutive datagrams of one size to one
// address cross the kernel's stack as one (UDP generic segmentation and receive
// offload, UDP_SEGMENT and UDP_GRO of udp(7)). Elsewhere, and where the kernel or
// the device lacks one of them, the same calls do the same with more system
// calls.
//
// It must not know what the datagrams mean, nor who may send them.
package datagram
