package spec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/wifi"
)

// TestTheTablesAgree: what a file may name is what agents carry, no more and no
// less. The product keeps the two packages apart; a test may look at both.
func TestTheTablesAgree(t *testing.T) {
	table, err := session.Transports()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range transportTable {
		if slices.Contains(table.Families(), f.name) != (f.pending == "") {
			t.Errorf("a file can name %s, pending %q, and agents carry it: %v", f.name, f.pending, slices.Contains(table.Families(), f.name))
		}
	}
	for _, name := range table.Families() {
		if !slices.ContainsFunc(transportTable, func(f transportFamily) bool { return f.name == name }) {
			t.Errorf("agents carry %s, which a file cannot name", name)
		}
	}
	if !slices.Equal(hop.Variants(), hopVariants) {
		t.Errorf("variants of hop: %q here, %q there", hopVariants, hop.Variants())
	}
	for _, k := range workload.Kinds() {
		if _, ok := workloadKeys[WorkloadKind(k)]; !ok {
			t.Errorf("the workload %s cannot be named in a file", k)
		}
	}
	if len(workload.Kinds()) != len(workloadKeys) {
		t.Errorf("workloads: %v here, %v there", workloadKeys, workload.Kinds())
	}
	for dscp := range 64 {
		if got := wifi.CategoryOf(uint8(dscp)).String(); strings.ToLower(got) != queueOf(dscp) {
			t.Errorf("the code point %d leads to %s here, to %s there", dscp, queueOf(dscp), got)
		}
	}
	d, o := hop.DefaultConfig(), defaultHop()
	if o.Block != d.BlockSize || o.H != d.H || o.Window != d.Window || int(o.Payload) != d.Payload || o.Backpressure == d.NoBackpressure || o.Withholding == d.NoWithholding {
		t.Errorf("defaults of hop: %+v here, %+v there", o, d)
	}
}

func defaultHop() HopOptions {
	return defaultsOf(reflect.TypeFor[HopOptions]()).Interface().(HopOptions)
}
