// Package tcp is a model TCP for virtual time: one connection's end as a state
// machine that behaves as Linux's does (kernel 6.x: SACK, RACK-TLP, PRR, F-RTO,
// delayed and quick ACKs, buffer auto-tuning, TSO-sized bursts), so that an
// experiment in virtual time can stand beside one over kernel sockets. It
// counts bytes and carries none; it must not know a clock, a goroutine, a
// socket, a medium or any other package of hopbed except the units.
//
// Where an RFC and Linux differ, Linux is followed and the code says so;
// DESIGN.md lists the differences, the measured distance to the kernel and
// what is not modelled.
package tcp
