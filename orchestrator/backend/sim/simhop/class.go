package simhop

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/wifi"
)

// queues is the access category of each class.
var queues = [hop.NumClasses]wifi.AC{hop.Data: wifi.BK, hop.Control: wifi.VO}

// AC returns the access category that carries a class (Hop paper §4).
func AC(c hop.Class) wifi.AC { return queues[c] }

// ClassOf returns the class that an access category carries.
func ClassOf(ac wifi.AC) hop.Class {
	if ac == queues[hop.Control] {
		return hop.Control
	}
	return hop.Data
}
