//go:build !linux

package radio

import (
	"fmt"
	"runtime"
)

func (system) Interface(name string) (Interface, error) {
	return Interface{}, fmt.Errorf("interface %s: unavailable on %s: real nodes run Linux", name, runtime.GOOS)
}

func (system) Wireless(name string) (*Wireless, error) {
	return nil, fmt.Errorf("interface %s: unavailable on %s: real nodes run Linux", name, runtime.GOOS)
}
