//go:build linux

package session

import (
	"github.com/hopbed/hopbed/agent/linkprobe/probenode"
	"github.com/hopbed/hopbed/agent/proto"
)

// startProbes begins a measurement of the links; one that is under way ends.
func (s *session) startProbes(p proto.Probe) error {
	if err := s.need(proto.TypeProbe, configured); err != nil {
		return err
	}
	s.endProbes()
	iface := s.cfg.Interfaces[0].Name
	if s.cfg.Bridge != nil {
		iface = s.cfg.Bridge.Name
	}
	n, err := probenode.Start(s.cfg.Node, iface, p)
	if err != nil {
		return err
	}
	s.probes = n
	return nil
}

// heardProbes ends the measurement and returns what came.
func (s *session) heardProbes() (*proto.Heard, error) {
	if s.probes == nil {
		return nil, &proto.Error{Code: proto.CodeOrder, What: string(proto.TypeHeard), Wanted: "a node that probes its links", Got: "a node that was not ordered to"}
	}
	n := s.probes
	s.probes = nil
	return n.Heard()
}

// endProbes drops a measurement that is under way.
func (s *session) endProbes() {
	if s.probes != nil {
		s.probes.Close()
		s.probes = nil
	}
}
