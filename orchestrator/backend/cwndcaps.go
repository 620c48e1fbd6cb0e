package backend

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
)

// FlowsAt are the flows in which a node is source, destination or relay.
func FlowsAt(flows []proto.Flow, node int) []proto.Flow {
	var out []proto.Flow
	for _, f := range flows {
		if slices.Contains(f.Path, node) {
			out = append(out, f)
		}
	}
	return out
}

// CwndCaps returns the caps of node i's TCP connections by destination. The
// kernel keeps a cap per pair of addresses, so that all connections from one node
// to another share it.
func CwndCaps(flows []proto.Flow, i int) (map[int]int, error) {
	caps, owner := map[int]int{}, map[int]*proto.Flow{}
	for k := range flows {
		f := &flows[k]
		to, ok := connectsTo(f, i)
		if !ok {
			continue
		}
		if o := owner[to]; o != nil && caps[to] != f.Options.CwndCap {
			return nil, &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("cwnd-cap of flows %d (%s) and %d (%s)", o.ID, o.Transport, f.ID, f.Transport),
				Wanted: "one cap for all TCP connections from one node to another", Got: fmt.Sprintf("%s and %s", capText(caps[to]), capText(f.Options.CwndCap)),
				Detail: "Linux keeps the cap with the pair of addresses (tcp_metrics), not with the connection",
				Remedy: "let the flows run in different points of the matrix or between different nodes, or --backend sim"}
		}
		caps[to], owner[to] = f.Options.CwndCap, f
	}
	return caps, nil
}

func capText(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// connectsTo returns the node to which node i opens a TCP connection for the
// flow, if it does.
func connectsTo(f *proto.Flow, i int) (to int, ok bool) {
	switch spec.Transport(f.Transport).Family() {
	case spec.FamilyTCP, spec.FamilyCoopTCP:
		return f.Dst, f.Src == i
	case spec.FamilyHopByHopTCP, spec.FamilyBundle:
		if at := slices.Index(f.Path, i); at >= 0 && at+1 < len(f.Path) {
			return f.Path[at+1], true
		}
	}
	return 0, false
}
