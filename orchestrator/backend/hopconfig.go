package backend

import (
	"encoding/json"
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/experiments/spec"
)

// HopConfig is the configuration of Hop at every node of a run: the variant
// that the flows name, with the options of the file. A node has one Hop, so the
// Hop flows of a run share one variant; two are an error.
func HopConfig(c *spec.Config) (hop.Config, error) {
	name := spec.FamilyHop
	seen := false
	for _, f := range c.Flows {
		if f.Transport.Family() != spec.FamilyHop {
			continue
		}
		if seen && string(f.Transport) != name {
			return hop.Config{}, fmt.Errorf("flows: the transports %s and %s at once: a node has one Hop with one set of switches; compare variants by the matrix", name, f.Transport)
		}
		name, seen = string(f.Transport), true
	}
	h, err := hop.Variant(name)
	if err != nil {
		return hop.Config{}, err
	}
	o := c.Transports.Hop
	h.BlockSize, h.H, h.Window, h.Payload = o.Block, o.H, o.Window, int(o.Payload)
	h.NoBackpressure = h.NoBackpressure || !o.Backpressure
	h.NoWithholding = h.NoWithholding || !o.Withholding
	return h, h.Validate()
}

// HopOrder is Hop's configuration on the wire; the agent adds the node's own
// identity.
func HopOrder(c *spec.Config) (json.RawMessage, error) {
	h, err := HopConfig(c)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("options of hop: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, fmt.Errorf("options of hop: %w", err)
	}
	delete(fields, "ID")
	return json.Marshal(fields)
}
