package netdump

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	other := errors.New("no such table")
	for _, c := range []struct {
		interrupted int // times, before then
		then        error
		calls       int
		err         error
	}{
		{0, nil, 1, nil},
		{3, nil, 4, nil},
		{2, other, 3, other},
		{1000, nil, tries, netlink.ErrDumpInterrupted},
	} {
		calls := 0
		v, err := Whole(func() (int, error) {
			calls++
			if calls <= c.interrupted {
				return 0, fmt.Errorf("table: %w", netlink.ErrDumpInterrupted)
			}
			return calls, c.then
		})
		if calls != c.calls || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || err == nil && v != calls {
			t.Errorf("%+v: %d calls, %d, %v", c, calls, v, err)
		}
	}
}
