// Package tap is the emulator's only contact with the kernel: the address plan
// of emulated nodes, TAP devices created inside another process's network
// namespace, and the settings that such a namespace needs.
//
// It must not know the medium, agents or experiments. It never touches an
// interface that it did not create nor a namespace that it was not given.
package tap
