package netdump

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries is ample: a table that changes during each of them is not to be read.
const tries = 8

// Whole calls read until the table did not change while it was read
// (NLM_F_DUMP_INTR of linux/netlink.h): another program, such as a network manager,
// or a scan of a radio, may change it at any time. The error is read's last one.
func Whole[T any](read func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := read()
		if n == tries || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return v, err
		}
	}
}
