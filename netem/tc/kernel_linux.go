package tc

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/netdump"
)

// kernel is a netlink socket in the network namespace of the thread that opened
// it.
type kernel struct{ socket *nl.NetlinkSocket }

// answerWithin bounds the wait for the kernel, which answers within the call; a
// missing answer is a fault, not slowness.
var answerWithin = unix.Timeval{Sec: 5}

func dial() (*kernel, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	err = errors.Join(s.SetReceiveTimeout(&answerWithin), s.SetSendTimeout(&answerWithin), s.SetExtAck(true))
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	return &kernel{s}, nil
}

func (k *kernel) close() { k.socket.Close() }

// message is a traffic control message and its attributes.
type message struct {
	nl.TcMsg
	attrs []*nl.RtAttr
}

func (m *message) add(kind int, data []byte) *nl.RtAttr {
	a := nl.NewRtAttr(kind, data)
	m.attrs = append(m.attrs, a)
	return a
}

func (k *kernel) execute(kind, flags int, m *message, answer uint16) ([][]byte, error) {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Seq: req.Seq, Socket: k.socket}}
	req.AddData(&m.TcMsg)
	for _, a := range m.attrs {
		req.AddData(a)
	}
	return req.Execute(unix.NETLINK_ROUTE, answer)
}

// do carries out a change.
func (k *kernel) do(kind, flags int, m *message) error {
	_, err := k.execute(kind, flags|unix.NLM_F_ACK, m, 0)
	return err
}

// object is a discipline, class or filter as the kernel tells it.
type object struct {
	parent, handle, info uint32
	kind                 string
	options              []byte
	stats                []byte
	fresh                bool // this process has just made it
}

// list returns the objects of a device; kind is RTM_GETQDISC, RTM_GETTCLASS or
// RTM_GETTFILTER, whose parent must be given.
func (k *kernel) list(kind int, index int, parent uint32) ([]object, error) {
	m := &message{TcMsg: nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent}}
	answers, err := netdump.Whole(func() ([][]byte, error) {
		return k.execute(kind, unix.NLM_F_DUMP, m, uint16(kind-2)) // RTM_NEW… is two below RTM_GET…
	})
	if err != nil {
		return nil, fmt.Errorf("read what the kernel has: %w", err)
	}
	var out []object
	for _, a := range answers {
		t := nl.DeserializeTcMsg(a)
		if int(t.Ifindex) != index {
			continue // disciplines are told of every device
		}
		o := object{parent: t.Parent, handle: t.Handle, info: t.Info}
		attrs, err := nl.ParseRouteAttr(a[t.Len():])
		if err != nil {
			return nil, fmt.Errorf("read what the kernel has: %w", err)
		}
		for _, x := range attrs {
			switch x.Attr.Type {
			case nl.TCA_KIND:
				o.kind = nl.BytesToString(x.Value)
			case nl.TCA_OPTIONS, nl.TCA_OPTIONS | unix.NLA_F_NESTED:
				o.options = x.Value
			case nl.TCA_STATS2, nl.TCA_STATS2 | unix.NLA_F_NESTED:
				o.stats = x.Value
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// attributes parses nested attributes into a map by type, flags removed.
func attributes(b []byte) (map[uint16][]byte, error) {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	m := map[uint16][]byte{}
	for _, a := range list {
		m[a.Attr.Type&^uint16(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = a.Value
	}
	return m, nil
}
