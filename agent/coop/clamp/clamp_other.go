//go:build !linux

package clamp

import (
	"runtime"

	"github.com/hopbed/hopbed/agent/proto"
)

// Clamp exists on Linux only.
type Clamp struct{}

// New says that only Linux has it.
func New() (*Clamp, error) {
	return nil, &proto.Error{Code: proto.CodeUnavailable, What: "caps of live TCP sockets by BPF", Detail: "they need Linux, this is " + runtime.GOOS, Remedy: "use --backend sim"}
}
