//go:build !linux

package doctor

import "runtime"

// Examine runs every check.
func Examine(error) []Check {
	return []Check{{
		Name: "operating system", State: Lack, Needed: true, Found: runtime.GOOS,
		Cost: "the back end netns needs Linux's network namespaces and TAP devices", Remedy: "use --backend sim here, or a Linux machine",
	}}
}
