// Package hopnet lets a program use the Hop protocol between hosts: reliable
// streams and blocks that travel hop by hop over UDP, through relays, over links
// that lose, delay and fail.
//
//	node, err := hopnet.Open(hopnet.Config{ID: 1, Listen: ":4410",
//		Peers: []hopnet.Peer{{ID: 2, Addr: "10.0.0.2:4410"}}})
//	conn, err := node.Dial(ctx, 2, 80)      // a net.Conn
//	err = node.SendBlock(ctx, 2, 80, data)  // nil: the program there has it
//
// A Node is one UDP socket. It relays for others, answers those who dial the
// services it listens to (Listen), and dials others (Dial). A destination need
// not be a neighbour: routes name the next hop (Config.Routes, Config.Gateway);
// the way back is learnt from what comes along it (Config.NoLearning).
//
// What an error means, what is bounded and how, and the messages that this
// package adds to Hop's are in DESIGN.md beside this file; Hop itself is in that
// of the package above.
//
// It must not know experiments, controllers or the back ends that emulate nodes.
package hopnet
