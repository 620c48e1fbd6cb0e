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
)

// class says what the medium has to know about an Ethernet frame.
type class struct {
	dst int // node index or wifi.Broadcast
	ac  wifi.AC
	len vtime.Bytes // length of the network-layer packet
}

type refusal uint8

const (
	accepted refusal = iota
	foreign          // neither IPv4 nor ARP, or too short to be what it says
	unknown          // unicast to an address that no node has
)

// classify reads an Ethernet frame. The radio carries what 802.11 would: the
// packet behind an LLC/SNAP header in place of the Ethernet header, so the
// length is the packet's own, from the IP header (RFC 791 3.1).
func classify(frame []byte, nodes int) (class, refusal) {
	if len(frame) < headerLen {
		return class{}, foreign
	}
	c := class{dst: wifi.Broadcast, ac: wifi.BE}
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
		c.len, c.ac = vtime.Bytes(total), Category(packet[1]>>2)
	case typeARP:
		if len(packet) < 28 { // RFC 826 over Ethernet and IPv4
			return class{}, foreign
		}
		c.len = 28
	default:
		return class{}, foreign
	}
	dst := tap.HardwareAddress(frame[:6])
	if dst.Multicast() {
		return c, accepted
	}
	i, ok := tap.NodeOfHardware(dst)
	if !ok || i >= nodes {
		return class{}, unknown
	}
	c.dst = i
	return c, accepted
}

// Category maps a DSCP to the access category, by the precedence bits as WMM
// does (802.11-2020 table 10-1 for the user priority): CS1, CS2 → background;
// CS0, CS3 → best effort; CS4, CS5 → video; CS6, CS7 → voice. Expedited
// forwarding is voice (RFC 8325 4.1), whatever its precedence bits say.
func Category(dscp uint8) wifi.AC {
	const ef = 46
	if dscp == ef {
		return wifi.VO
	}
	return [8]wifi.AC{wifi.BE, wifi.BK, wifi.BK, wifi.BE, wifi.VI, wifi.VI, wifi.VO, wifi.VO}[dscp>>3&7]
}
