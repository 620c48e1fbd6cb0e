//go:build linux

package session

import (
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle/daemon"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/agent/transport/relay"
	"github.com/hopbed/hopbed/agent/transport/sock"
)

// Transports is the agent's table: one line per transport.
func Transports() (*transport.Table, error) {
	return transport.NewTable(
		sock.TCP{},
		sock.Coop{},
		sock.UDP{},
		sock.Hop{},
		relay.Driver{},
		daemon.Driver{},
		program.Iperf3{},
		program.Iperf2{},
		program.Exec{},
	)
}
