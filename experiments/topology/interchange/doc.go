// Package interchange reads and writes the topology files of other tools: olsrd's
// jsoninfo and txtinfo, batman-adv's, NetJSON NetworkGraph, and those of
// meshnet-lab. What they say of a link becomes a share of frames delivered, in
// either direction.
//
// It must not know what a network is laid out for: it imports no experiment and no
// medium.
package interchange
