//go:build linux

package session

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/hopbed/hopbed/agent/proto"
)

// checkExchange reports what is wrong with a flow that is one direction of an
// exchange. At its ends the other direction must be there, since what either
// sends depends on what the other brings; a relay may be on the path of one only.
func checkExchange(c *proto.Configure, f *proto.Flow) error {
	bad := func(detail string, args ...any) error {
		return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: fmt.Sprintf("flow %d", f.ID), Detail: fmt.Sprintf(detail, args...)}
	}
	switch {
	case f.Workload.Role != "" && f.Peer == nil:
		return bad("its workload has the role %q, and no peer is named", f.Workload.Role)
	case f.Peer == nil:
		return nil
	case f.Workload.Role == "":
		return bad("flow %d is named as its peer, and its workload has no role", *f.Peer)
	case c.Node != f.Src && c.Node != f.Dst:
		return nil
	}
	i := slices.IndexFunc(c.Flows, func(p proto.Flow) bool { return p.ID == *f.Peer })
	if i < 0 {
		return bad("its peer, flow %d, is not among the flows of this node", *f.Peer)
	}
	p := &c.Flows[i]
	mirrored := f.Workload
	mirrored.Role = p.Workload.Role
	switch {
	case p.Peer == nil || *p.Peer != f.ID:
		return bad("flow %d is its peer, but not the other way round", p.ID)
	case p.Src != f.Dst || p.Dst != f.Src || p.Workload.Role == f.Workload.Role:
		return bad("its peer, flow %d, is not the opposite direction", p.ID)
	case p.Transport != f.Transport || p.Start != f.Start || p.Stop != f.Stop || !reflect.DeepEqual(mirrored, p.Workload):
		return bad("its peer, flow %d, has another transport, other times or another workload: the two are one exchange", p.ID)
	}
	return nil
}
