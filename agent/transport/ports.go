package transport

// The ports of the experiment's transports.
const (
	// HopPort is the UDP port of every node's Hop.
	HopPort = 4410
	// FlowPort is the port at which the destination of flow 0 listens, and its
	// relays do if it has any; flow f has FlowPort+f.
	FlowPort = 20000
	// MaxFlows is the number of flows that have a port: below the usual range
	// of ephemeral ports (net.ipv4.ip_local_port_range, from 32768).
	MaxFlows = 12768
)
