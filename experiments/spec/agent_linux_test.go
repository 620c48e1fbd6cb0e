package spec

import (
	"reflect"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/workload"
)

// TestTheTablesAgree: what a file may name is what agents carry, no more and no
// less. The product keeps the two packages apart; a test may look at both.
func TestTheTablesAgree(t *testing.T) {
	table, err := session.Transports()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range transportTable {
		if !slices.Contains(table.Families(), f.name) {
			t.Errorf("a file can name %s, which agents do not carry", f.name)
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
		if k != workload.Kind(Continual) && k != workload.Kind(Sized) {
			t.Errorf("the workload %s cannot be named in a file", k)
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
