package capture

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// A reader of what this package writes, by the specification and without the
// writer's code.

type file struct {
	comment    string
	interfaces []readInterface
	names      map[string]string
	packets    []readPacket
}

type readInterface struct {
	name          string
	link          int
	snap          int
	seen, dropped uint64
	hasStatistics bool
	until         vtime.Time
	nanoseconds   bool
}

type readPacket struct {
	iface     int
	at        vtime.Time
	data      []byte
	original  int
	direction uint32
	comment   string
}

type option struct {
	code  int
	value []byte
}

func readFile(t testing.TB, b []byte) *file {
	t.Helper()
	f, err := parse(b)
	if err != nil {
		t.Fatalf("the capture cannot be read: %v", err)
	}
	return f
}

func parse(b []byte) (*file, error) {
	f := &file{names: map[string]string{}}
	for n := 0; len(b) > 0; n++ {
		if len(b) < 12 {
			return nil, fmt.Errorf("block %d: %d bytes are left", n, len(b))
		}
		kind, size := le.Uint32(b), int(le.Uint32(b[4:]))
		if size%4 != 0 || size < 12 || size > len(b) || le.Uint32(b[size-4:]) != uint32(size) {
			return nil, fmt.Errorf("block %d of type %x: length %d of %d left", n, kind, size, len(b))
		}
		if (n == 0) != (kind == 0x0a0d0d0a) {
			return nil, fmt.Errorf("block %d has type %x", n, kind)
		}
		if err := f.block(kind, b[8:size-4]); err != nil {
			return nil, fmt.Errorf("block %d: %w", n, err)
		}
		b = b[size:]
	}
	return f, nil
}

func (f *file) block(kind uint32, b []byte) error {
	switch kind {
	case 0x0a0d0d0a:
		if le.Uint32(b) != 0x1a2b3c4d || le.Uint16(b[4:]) != 1 || le.Uint16(b[6:]) != 0 {
			return fmt.Errorf("section header % x", b[:8])
		}
		for _, o := range options(b[16:]) {
			if o.code == 1 {
				f.comment = string(o.value)
			}
		}
	case 1:
		i := readInterface{link: int(le.Uint16(b)), snap: int(le.Uint32(b[4:]))}
		for _, o := range options(b[8:]) {
			switch o.code {
			case 2:
				i.name = string(o.value)
			case 9:
				i.nanoseconds = len(o.value) == 1 && o.value[0] == 9
			}
		}
		f.interfaces = append(f.interfaces, i)
	case 4:
		for _, o := range options(b) {
			if o.code == 1 {
				f.names[fmt.Sprint(o.value[:4])] = string(bytes.TrimRight(o.value[4:], "\x00"))
			}
		}
	case 5:
		i := &f.interfaces[le.Uint32(b)]
		i.hasStatistics, i.until = true, moment(b[4:])
		for _, o := range options(b[12:]) {
			switch o.code {
			case 4:
				i.seen = le.Uint64(o.value)
			case 5:
				i.dropped = le.Uint64(o.value)
			}
		}
	case 6:
		n := int(le.Uint32(b[12:]))
		p := readPacket{iface: int(le.Uint32(b)), at: moment(b[4:]), data: b[20 : 20+n], original: int(le.Uint32(b[16:]))}
		for _, o := range options(b[20+(n+3)/4*4:]) {
			switch o.code {
			case 1:
				p.comment = string(o.value)
			case 2:
				p.direction = le.Uint32(o.value)
			}
		}
		if p.iface >= len(f.interfaces) || n > p.original {
			return fmt.Errorf("packet of interface %d, %d bytes of %d", p.iface, n, p.original)
		}
		f.packets = append(f.packets, p)
	default:
		return fmt.Errorf("unknown type %x", kind)
	}
	return nil
}

func moment(b []byte) vtime.Time {
	return vtime.Time(uint64(le.Uint32(b))<<32 | uint64(le.Uint32(b[4:])))
}

func options(b []byte) (out []option) {
	for len(b) >= 4 {
		code, n := int(le.Uint16(b)), int(le.Uint16(b[2:]))
		if code == 0 {
			break
		}
		out = append(out, option{code, b[4 : 4+n]})
		b = b[4+(n+3)/4*4:]
	}
	return out
}
