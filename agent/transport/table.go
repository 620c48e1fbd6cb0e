package transport

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
)

// Table finds the driver of a flow.
type Table struct {
	drivers []Driver
}

// NewTable makes a table; two drivers of one family are an error.
func NewTable(drivers ...Driver) (*Table, error) {
	t := &Table{}
	for _, d := range drivers {
		if _, err := t.driver(d.Family()); err == nil {
			return nil, &proto.Error{Code: proto.CodeInternal, What: "transport " + d.Family(), Detail: "it is in the table twice"}
		}
		t.drivers = append(t.drivers, d)
	}
	return t, nil
}

// Drivers returns the table's drivers in its order.
func (t *Table) Drivers() []Driver { return t.drivers }

// Families lists the table in its order.
func (t *Table) Families() []string {
	var f []string
	for _, d := range t.drivers {
		f = append(f, d.Family())
	}
	return f
}

func (t *Table) driver(family string) (Driver, error) {
	for _, d := range t.drivers {
		if d.Family() == family {
			return d, nil
		}
	}
	return nil, &proto.Error{Code: proto.CodeOrder, What: "transport", Got: family, Wanted: "one of " + strings.Join(t.Families(), ", ")}
}

// Group checks every flow and sorts the flows by driver, in the table's order.
func (t *Table) Group(flows []proto.Flow) ([]Group, error) {
	groups := make([]Group, len(t.drivers))
	seen := make(map[int]bool)
	for i := range flows {
		f := &flows[i]
		what := fmt.Sprintf("flow %d", f.ID)
		if seen[f.ID] {
			return nil, &proto.Error{Code: proto.CodeOrder, What: what, Detail: "it is given twice"}
		}
		seen[f.ID] = true
		family, _ := Split(f.Transport)
		d, err := t.driver(family)
		if err == nil {
			err = d.Check(f)
		}
		if err == nil {
			err = f.Workload.Validate()
		}
		if err != nil {
			e := *proto.AsError(err, proto.CodeOrder)
			e.What = strings.TrimSuffix(what+": "+e.What, ": ")
			return nil, &e
		}
		for j, have := range t.drivers {
			if have == d {
				groups[j].Driver = d
				groups[j].Flows = append(groups[j].Flows, *f)
			}
		}
	}
	var used []Group
	for _, g := range groups {
		if g.Driver != nil {
			used = append(used, g)
		}
	}
	return used, nil
}

// Group is one driver and its flows.
type Group struct {
	Driver Driver
	Flows  []proto.Flow
}
