package emulator

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// wiredConfig has a radio node 0 that is wired to node 1, and a node 2.
func wiredConfig() *Config {
	end := func(node, slot int) PipeEnd {
		return PipeEnd{node, "eth0", tap.PipeHardwareAddr(node, slot)}
	}
	return &Config{
		MACs: []wifi.MAC{wifi.DefaultMAC(wifi.StandardB)}, Radio: wifi.DiskRadio(100, 200), Positions: make([]wifi.Position, 3),
		Nodes: []Node{{Name: "a", PID: 1}, {Name: "b", PID: 1, NoRadio: true}, {Name: "c", PID: 1}},
		Pipes: []Pipe{{Ends: [2]PipeEnd{end(0, 0), end(1, 0)}}},
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // "" = valid
	}{
		{"as it is", func(c *Config) {}, ""},
		{"no radio at all needs no medium", func(c *Config) {
			c.Nodes[0].NoRadio, c.Nodes[2].NoRadio = true, true
			c.MACs, c.Positions = nil, nil
		}, ""},
		{"a radio needs one", func(c *Config) { c.MACs = nil }, "0 MAC configurations"},
		{"a matrix for a node without a radio", func(c *Config) {
			c.Positions, c.Matrix = nil, &Matrix{Delivery: [][]float64{{0, 0, 1}, {0, 0, 0}, {0, 0.5, 0}}}
		}, "joins nodes 1 and 2"},
		{"a matrix that leaves it out", func(c *Config) {
			c.Positions, c.Matrix = nil, &Matrix{Delivery: [][]float64{{0, 0, 1}, {0, 0, 0}, {1, 0, 0}}}
		}, ""},
		{"via", func(c *Config) { c.Nodes[0].Via = map[int]int{1: 2} }, ""},
		{"via nobody", func(c *Config) { c.Nodes[0].Via = map[int]int{1: 3} }, "does not exist"},
		{"via a wire", func(c *Config) { c.Nodes[0].Via = map[int]int{2: 1} }, "with a radio"},
		{"via itself", func(c *Config) { c.Nodes[0].Via = map[int]int{1: 0} }, "with a radio"},
		{"from a wired node", func(c *Config) { c.Nodes[1].Via = map[int]int{2: 0} }, "with a radio"},
		{"an end nowhere", func(c *Config) { c.Pipes[0].Ends[1].Node = 3 }, "node 3 does not exist"},
		{"to itself", func(c *Config) { c.Pipes[0].Ends[1].Node, c.Pipes[0].Ends[1].Interface = 0, "eth1" }, "to itself"},
		{"no interface", func(c *Config) { c.Pipes[0].Ends[0].Interface = "" }, "1 to 15 characters"},
		{"a long name", func(c *Config) { c.Pipes[0].Ends[0].Interface = "a234567890123456" }, "1 to 15 characters"},
		{"the radio's interface", func(c *Config) { c.Pipes[0].Ends[0].Interface = "wlan0" }, "the radio's"},
		{"no address", func(c *Config) { c.Pipes[0].Ends[0].HardwareAddress = tap.HardwareAddress{} }, "no address"},
		{"a group's address", func(c *Config) { c.Pipes[0].Ends[0].HardwareAddress = tap.HardwareAddress{1} }, "no address"},
		{"an interface twice", func(c *Config) {
			p := c.Pipes[0]
			p.Ends[1].Node = 2
			c.Pipes = append(c.Pipes, p)
		}, "both use interface eth0 of node 0 (a)"},
		{"a bad pipe", func(c *Config) { c.Pipes[0].Config[1].Rate = -1 }, "from b to a"},
		{"changes", func(c *Config) {
			c.Changes = []Change{{At: 5, Link: [2]int{1, 1}}, {At: 5, Link: [2]int{0, 2}, Up: true}}
		}, ""},
		{"a change of nobody", func(c *Config) { c.Changes = []Change{{Link: [2]int{0, 3}}} }, "change 0: node 3 does not exist"},
		{"a change of a link without radio", func(c *Config) { c.Changes = []Change{{Link: [2]int{0, 1}}} }, "change 0: node 1 (b) has no radio"},
		{"changes out of order", func(c *Config) { c.Changes = []Change{{At: 5, Link: [2]int{1, 1}}, {At: 4, Link: [2]int{1, 1}}} }, "change 1 is at 4ns, before"},
		{"an epoch", func(c *Config) { c.Pipes[0].Config[0].Epoch = 1 }, "comes with Begin"},
	} {
		cfg := wiredConfig()
		c.change(cfg)
		err := cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Nodes without a radio are mute in the channel, wherever they are.
func TestWiredNodesAreMute(t *testing.T) {
	ch, err := wiredConfig().Channel()
	if err != nil {
		t.Fatal(err)
	}
	rate := 11 * vtime.MbitPerSecond
	if ch.Delivery(0, 2, 1500, rate) != 1 || ch.Delivery(0, 1, 1500, rate) != 0 || ch.Delivery(1, 2, 1500, rate) != 0 {
		t.Errorf("deliveries %v, %v, %v; want 1 between the radios alone", ch.Delivery(0, 2, 1500, rate), ch.Delivery(0, 1, 1500, rate), ch.Delivery(1, 2, 1500, rate))
	}
}
