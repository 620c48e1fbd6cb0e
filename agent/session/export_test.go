//go:build linux

package session

import (
	"maps"
	"slices"

	"github.com/hopbed/hopbed/agent/route"
)

// ReadOffloads reads the segmentation offloads of an interface.
var ReadOffloads = readOffloads

// Kinds are the kinds of change that an agent can take back.
func Kinds() []string { return slices.Sorted(maps.Keys(undoers(new(route.Caps)))) }
