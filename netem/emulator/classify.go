package emulator

import (
	"encoding/binary"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// The Ethernet II header of what a TAP gives: destination, source, type.
const (
	headerLen = 14
	typeIPv4  = 0x0800
	typeARP   = 0x0806
	typeIPv6  = 0x86dd
)

// class says what a link has to know about the packet in an Ethernet frame.
type class struct {
	ac  wifi.AC     // for the radio; a pipe has one queue
	len vtime.Bytes // length of the network-layer packet
}

type refusal uint8

const (
	accepted refusal = iota
	foreign          // neither IPv4 nor ARP (nor, where it is on, IPv6), or too short to be what it says
	unknown          // unicast to an address that no radio reaches
)

// classify reads an Ethernet frame. The radio carries what 802.11 would: the
// packet behind an LLC/SNAP header in place of the Ethernet header, so the
// length is the packet's own, from the IP header (RFC 791 3.1). It is the length
// on a pipe as well, which has an overhead of its own for framing. IPv6 passes only
// where ipv6 is set.
func classify(frame []byte, ipv6 bool) (class, refusal) {
	if len(frame) < headerLen {
		return class{}, foreign
	}
	c := class{ac: wifi.BE}
	packet := frame[headerLen:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeIPv4:
		if len(packet) < 20 || packet[0]>>4 != 4 {
			return class{}, foreign
		}
		total := int(binary.BigEndian.Uint16(packet[2:]))
		if total < 20 || total > len(packet) {
			return class{}, foreign
		}
		c.len, c.ac = vtime.Bytes(total), wifi.CategoryOf(packet[1]>>2)
	case typeARP:
		if len(packet) < 28 { // RFC 826 over Ethernet and IPv4
			return class{}, foreign
		}
		c.len = 28
	case typeIPv6: // RFC 8200 3: the header is 40 bytes; jumbograms do not fit an MTU of 1500
		if !ipv6 || len(packet) < 40 || packet[0]>>4 != 6 {
			return class{}, foreign
		}
		total := 40 + int(binary.BigEndian.Uint16(packet[4:]))
		if total > len(packet) {
			return class{}, foreign
		}
		traffic := packet[0]<<4 | packet[1]>>4
		c.len, c.ac = vtime.Bytes(total), wifi.CategoryOf(traffic>>2)
	default:
		return class{}, foreign
	}
	return c, accepted
}

// receiver says which radio takes a frame of the node's radio by its destination
// address: wifi.Broadcast, the radio of the address's owner, or, where Via says
// so, that of a bridge before the owner. It is false where there is none.
func (c *Config) receiver(node int, frame []byte) (int, bool) {
	dst := tap.HardwareAddress(frame[:6])
	if dst.Multicast() {
		return wifi.Broadcast, true
	}
	i, ok := tap.NodeOfHardware(dst)
	if !ok {
		i, _, ok = tap.NodeOfPipeHardware(dst)
	}
	if !ok || i >= len(c.Nodes) {
		return 0, false
	}
	if via := c.Nodes[node].Via; len(via) > 0 {
		if to, ok := via[i]; ok {
			return to, true
		}
	}
	return i, i != node && !c.Nodes[i].NoRadio
}
