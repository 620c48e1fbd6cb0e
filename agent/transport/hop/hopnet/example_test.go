package hopnet_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
)

// A stream between two nodes. Here both are in one program, on loopback; nothing
// changes where they are on two hosts.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	server, err := hopnet.Open(hopnet.Config{ID: 2, Listen: "127.0.0.1:0", Open: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	listener, err := server.Listen(80)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept() // a net.Conn
		if err != nil {
			return
		}
		defer conn.Close()
		question, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "You said: %s", question)
	}()

	client, err := hopnet.Open(hopnet.Config{ID: 1, Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	node, err := client.Connect(ctx, server.LocalAddr().String()) // who is there?
	if err != nil {
		log.Fatal(err)
	}
	conn, err := client.Dial(ctx, node, 80)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello, hop by hop")
	conn.CloseWrite()
	answer, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("node %v: %s\n", node, answer)
	// Output: node 2: You said: hello, hop by hop
}

// Blocks are whole messages, and SendBlock returns when the program at the other
// end has one.
func ExampleNode_SendBlock() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sink, err := hopnet.Open(hopnet.Config{ID: 2, Listen: "127.0.0.1:0", Open: true})
	if err != nil {
		log.Fatal(err)
	}
	defer sink.Close()
	listener, err := sink.Listen(7)
	if err != nil {
		log.Fatal(err)
	}
	sensor, err := hopnet.Open(hopnet.Config{ID: 1, Listen: "127.0.0.1:0",
		Peers: []hopnet.Peer{{ID: 2, Addr: sink.LocalAddr().String()}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sensor.Close()

	sent := make(chan error)
	go func() { sent <- sensor.SendBlock(ctx, 2, 7, []byte("21.5 °C")) }()
	block, err := listener.ReceiveBlock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("from node %v: %s\n", block.From, block.Data)
	fmt.Println("confirmed:", <-sent == nil)
	// Output:
	// from node 1: 21.5 °C
	// confirmed: true
}

// A relay in the middle only has to know its neighbours; the way back is learnt.
func Example_relay() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open := func(c hopnet.Config) *hopnet.Node {
		c.Listen = "127.0.0.1:0"
		n, err := hopnet.Open(c)
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	server := open(hopnet.Config{ID: 3, Open: true})
	defer server.Close()
	relay := open(hopnet.Config{ID: 2, Open: true, Peers: []hopnet.Peer{{ID: 3, Addr: server.LocalAddr().String()}}})
	defer relay.Close()
	client := open(hopnet.Config{ID: 1, Gateway: 2, Peers: []hopnet.Peer{{ID: 2, Addr: relay.LocalAddr().String()}}})
	defer client.Close()

	listener, err := server.Listen(7)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := client.SendBlock(ctx, 3, 7, []byte("over two hops")); err != nil {
			log.Print(err)
		}
	}()
	block, err := listener.ReceiveBlock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("from node %v: %s\n", block.From, block.Data)
	// Output: from node 1: over two hops
}
