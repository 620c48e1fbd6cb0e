package tcp_test

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Two ends over a path of 10 ms each way; 70 segments take three round trips
// of slow start (10 + 20 + 40) and half of one. The driver hands segments over,
// runs the timers and lets the applications write and read.
func Example() {
	var pool tcp.Pool
	cfg := tcp.DefaultConfig()
	cfg.CC = "reno"
	client, _ := tcp.New(cfg, &pool)
	server, _ := tcp.New(cfg, &pool)
	server.Listen()
	client.Connect(0)

	type flight struct {
		at vtime.Time
		to *tcp.Conn
		s  *tcp.Segment
	}
	var wire []flight // in order of arrival: one delay for all
	now := vtime.Time(0)
	for written := vtime.Bytes(0); ; {
		written += client.Write(now, 100_000-written)
		if server.Read(now, 1<<30); written == 100_000 {
			client.Close(now)
		}
		for _, c := range []struct{ from, to *tcp.Conn }{{client, server}, {server, client}} {
			for s, ok := c.from.Poll(now); ok; s, ok = c.from.Poll(now) {
				wire = append(wire, flight{now.Add(10 * vtime.Millisecond), c.to, s})
			}
		}
		if server.EOF() {
			break
		}
		next := vtime.Min(client.Deadline(), server.Deadline())
		if len(wire) > 0 && wire[0].at <= next {
			now = wire[0].at
			wire[0].to.Receive(now, wire[0].s)
			pool.Put(wire[0].s)
			wire = wire[1:]
			continue
		}
		now = next
		client.Expire(now)
		server.Expire(now)
	}
	fmt.Println(server.Info().BytesReceived, "after", now, "window", client.Info().Cwnd)
	// Output: 100kB after 0.070000000s window 40
}
