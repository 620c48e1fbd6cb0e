//go:build linux

package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/undo"
)

// Caps makes the kernel obey the CwndCap of routes.
//
// The kernel takes the locked congestion window of a route into a cache, by pairs
// of addresses, and a new connection asks the cache alone (net/ipv4/tcp_metrics.c:
// tcp_init_metrics sets snd_cwnd_clamp from it). An entry is made when a
// connection between the two addresses ends in good order, by no other means. So
// that the caps hold from the first connection on, Enforce lets one come and go
// within the node: for a moment the destination is a local address, with the cap
// on its local route, and no packet leaves the node.
type Caps struct {
	// stuck are the entries that could not be removed: without rights outside its
	// user namespace a process may make them, but not remove them.
	stuck map[netip.Addr]int
}

// KindCaps is the kind of record by which Caps.Enforce is undone.
const KindCaps = "cwnd-caps"

// capped is its data.
type capped struct {
	Src         netip.Addr `json:"src"`
	To          []capOf    `json:"to"`
	MetricsSave string     `json:"tcp_no_metrics_save"` // as it was
}

type capOf struct {
	Dst netip.Addr `json:"dst"`
	Cap int        `json:"cap"`
}

// Enforce makes connections from src obey the caps of the routes, which
// Table.Replace has set before. Before anything is changed, push takes the record
// by which it is undone (KindCaps). The loopback interface must be up.
func (c *Caps) Enforce(push undo.Push, src netip.Addr, routes []proto.Route) error {
	var made []capOf
	for _, r := range routes {
		dst := r.Dst.Addr()
		if cap, ok := c.stuck[dst]; ok && cap != r.CwndCap {
			return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("cap of the congestion window to %v", dst), Wanted: fmt.Sprint(r.CwndCap), Got: fmt.Sprint(cap),
				Detail: "without root an earlier cap stays as long as the network namespace", Remedy: "start the agent anew, in a namespace of its own"}
		}
		if r.CwndCap == 0 {
			continue
		}
		if !src.Is4() || !r.Dst.IsSingleIP() {
			return &proto.Error{Code: proto.CodeOrder, What: "route " + Describe(r), Detail: "a cap needs a destination of one address and a node with an address"}
		}
		made = append(made, capOf{dst, r.CwndCap})
	}
	if len(made) == 0 {
		return nil
	}
	save, err := os.ReadFile(metricsSaveFile)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "caps of congestion windows", Detail: err.Error()}
	}
	if err := push(undo.New(KindCaps, "caps of congestion windows", capped{src, made, strings.TrimSpace(string(save))})); err != nil {
		return err
	}
	for _, r := range routes {
		if r.CwndCap == 0 {
			continue
		}
		if err := forget(src, r.Dst.Addr()); err != nil && !errors.Is(err, unix.EPERM) {
			return capError(r, err)
		}
		if err := visit(src, r.Dst.Addr(), r.CwndCap); err != nil {
			return capError(r, err)
		}
	}
	return VerifyCaps(src, routes)
}

// Forget is the undo.Func of KindCaps. A cap that may not be removed stays, and
// Enforce remembers it.
func (c *Caps) Forget(ctx context.Context, data json.RawMessage) error {
	return undo.On(func(_ context.Context, d capped) error {
		var errs []error
		for _, to := range d.To {
			// There only if Enforce was interrupted.
			if err := sendOne(localRoute(to.Dst, to.Cap)(unix.RTM_DELROUTE, 0)); err != nil && !gone(err) {
				errs = append(errs, err)
			}
			// The other end of the connection within the node left an entry, too.
			err := errors.Join(forget(d.Src, to.Dst), forget(to.Dst, d.Src))
			if errors.Is(err, unix.EPERM) {
				c.stick(to.Dst, to.Cap)
				continue
			}
			errs = append(errs, err)
		}
		now, err := os.ReadFile(metricsSaveFile)
		if err == nil && strings.TrimSpace(string(now)) != d.MetricsSave {
			err = os.WriteFile(metricsSaveFile, []byte(d.MetricsSave), 0)
		}
		return errors.Join(append(errs, err)...)
	})(ctx, data)
}

func (c *Caps) stick(dst netip.Addr, cap int) {
	if c.stuck == nil {
		c.stuck = make(map[netip.Addr]int)
	}
	c.stuck[dst] = cap
}

func capError(r proto.Route, err error) error {
	return &proto.Error{Code: proto.CodeSystem, What: "route " + Describe(r), Detail: "make the kernel use the cap: " + err.Error()}
}

// VerifyCaps reads the caps from the kernel's cache and compares them. The error
// is a *proto.Error of CodeNotApplied.
func VerifyCaps(src netip.Addr, routes []proto.Route) error {
	for _, r := range routes {
		if r.CwndCap == 0 {
			continue
		}
		got, err := cachedCwnd(src, r.Dst.Addr())
		if err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "tcp_metrics of " + r.Dst.Addr().String(), Detail: err.Error()}
		}
		if got != r.CwndCap {
			return &proto.Error{Code: proto.CodeNotApplied, What: fmt.Sprintf("cap of the congestion window from %v to %v", src, r.Dst.Addr()), Wanted: fmt.Sprint(r.CwndCap), Got: fmt.Sprint(got),
				Remedy: "another program may have changed the kernel's tcp_metrics: stop it for the run"}
		}
	}
	return nil
}

// visit makes the cache's entry.
func visit(src, dst netip.Addr, cap int) error {
	keep, err := allowMetrics()
	if err != nil {
		return err
	}
	local := localRoute(dst, cap)
	err = sendOne(local(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL))
	if err == nil {
		err = converse(src, dst)
		if err == nil {
			err = awaitEntry(src, dst)
		}
		err = errors.Join(err, sendOne(local(unix.RTM_DELROUTE, 0)))
	}
	return errors.Join(err, keep())
}

const metricsSaveFile = "/proc/sys/net/ipv4/tcp_no_metrics_save"

// allowMetrics lets the kernel save metrics; keep puts the earlier setting back.
func allowMetrics() (keep func() error, err error) {
	old, err := os.ReadFile(metricsSaveFile)
	if err != nil {
		return nil, err
	}
	value := strings.TrimSpace(string(old))
	if value == "0" {
		return func() error { return nil }, nil
	}
	keep = func() error { return os.WriteFile(metricsSaveFile, []byte(value), 0) }
	return keep, os.WriteFile(metricsSaveFile, []byte("0"), 0)
}

// localRoute describes dst as an address of this node, with a locked congestion
// window.
func localRoute(dst netip.Addr, cap int) func(command, flags int) *nl.NetlinkRequest {
	return func(command, flags int) *nl.NetlinkRequest {
		req := nl.NewNetlinkRequest(command, flags|unix.NLM_F_ACK)
		m := nl.NewRtMsg()
		m.Family, m.Dst_len, m.Protocol = unix.AF_INET, 32, Protocol
		m.Table, m.Type, m.Scope = unix.RT_TABLE_LOCAL, unix.RTN_LOCAL, unix.RT_SCOPE_HOST
		req.AddData(m)
		a := dst.As4()
		req.AddData(nl.NewRtAttr(unix.RTA_DST, a[:]))
		req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(loopback)))
		metrics := nl.NewRtAttr(unix.RTA_METRICS, nil)
		metrics.AddRtAttr(unix.RTAX_LOCK, nl.Uint32Attr(1<<unix.RTAX_CWND))
		metrics.AddRtAttr(unix.RTAX_CWND, nl.Uint32Attr(uint32(cap)))
		req.AddData(metrics)
		return req
	}
}

// loopback is the index of lo in every network namespace (LOOPBACK_IFINDEX).
const loopback = 1

func sendOne(req *nl.NetlinkRequest) error {
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// converse lets a connection from src to dst, both of this node, begin, carry a
// byte each way, and end in good order, the client first: it is the client's end
// that leaves the entry.
func converse(src, dst netip.Addr) (err error) {
	var fds []int
	defer func() {
		for _, fd := range fds {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	open := func(at netip.Addr) (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		fds = append(fds, fd)
		limit := unix.Timeval{Sec: 2} // nothing here ever waits for a network
		return fd, errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: at.As4()}))
	}
	server, err := open(dst)
	if err == nil {
		err = unix.Listen(server, 1)
	}
	if err != nil {
		return fmt.Errorf("listen at %v: %w", dst, err)
	}
	at, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	client, err := open(src)
	if err == nil {
		err = unix.Connect(client, at)
	}
	if err != nil {
		return fmt.Errorf("connect from %v: %w", src, err)
	}
	accepted, _, err := unix.Accept4(server, unix.SOCK_CLOEXEC)
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	fds = append(fds, accepted)
	b := []byte{0}
	for _, step := range []func() (int, error){
		func() (int, error) { return unix.Write(client, b) },
		func() (int, error) { return unix.Read(accepted, b) },
		func() (int, error) { return unix.Write(accepted, b) },
		func() (int, error) { return unix.Read(client, b) },
		func() (int, error) { return 0, unix.Shutdown(client, unix.SHUT_WR) },
		func() (int, error) { return unix.Read(accepted, b) },
		func() (int, error) { return 0, unix.Shutdown(accepted, unix.SHUT_WR) },
		func() (int, error) { return unix.Read(client, b) },
	} {
		if _, err := step(); err != nil {
			return fmt.Errorf("connection from %v to %v within the node: %w", src, dst, err)
		}
	}
	return nil
}

// awaitEntry returns when the cache has the entry: the last segments travel
// within the kernel, but not within a system call.
func awaitEntry(src, dst netip.Addr) error {
	for pause := 100 * time.Microsecond; pause < time.Second; pause *= 2 {
		if n, err := cachedCwnd(src, dst); err != nil || n > 0 {
			return err
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("the kernel made no entry for %v in tcp_metrics", dst)
}

// The generic netlink family of the cache (linux/tcp_metrics.h).
const (
	metricsFamily    = "tcp_metrics"
	metricsGet       = 1
	metricsDelete    = 2
	metricsAddr      = 1  // TCP_METRICS_ATTR_ADDR_IPV4
	metricsValues    = 6  // TCP_METRICS_ATTR_VALS
	metricsSrc       = 11 // TCP_METRICS_ATTR_SADDR_IPV4
	metricCwnd       = 4  // TCP_METRIC_CWND + 1
	metricsProtocols = 1  // TCP_METRICS_GENL_VERSION
)

func askMetrics(command uint8, src, dst netip.Addr) ([][]byte, error) {
	family, err := netlink.GenlFamilyGet(metricsFamily)
	if err != nil {
		return nil, fmt.Errorf("generic netlink family %s: %w", metricsFamily, err)
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	req.AddData(&nl.Genlmsg{Command: command, Version: metricsProtocols})
	d, s := dst.As4(), src.As4()
	req.AddData(nl.NewRtAttr(metricsAddr, d[:]))
	req.AddData(nl.NewRtAttr(metricsSrc, s[:]))
	return req.Execute(unix.NETLINK_GENERIC, 0)
}

// cachedCwnd returns the congestion window that the cache has for a pair of
// addresses, in segments; 0 = none.
func cachedCwnd(src, dst netip.Addr) (int, error) {
	replies, err := askMetrics(metricsGet, src, dst)
	if errors.Is(err, unix.ESRCH) {
		return 0, nil
	}
	if err != nil || len(replies) == 0 || len(replies[0]) < nl.SizeofGenlmsg {
		return 0, err
	}
	attrs, err := nl.ParseRouteAttr(replies[0][nl.SizeofGenlmsg:])
	if err != nil {
		return 0, err
	}
	for _, a := range attrs {
		if a.Attr.Type&^unix.NLA_F_NESTED != metricsValues {
			continue
		}
		values, err := nl.ParseRouteAttr(a.Value)
		if err != nil {
			return 0, err
		}
		for _, v := range values {
			if v.Attr.Type == metricCwnd && len(v.Value) >= 4 {
				return int(nl.NativeEndian().Uint32(v.Value)), nil
			}
		}
	}
	return 0, nil
}

// forget removes a pair of addresses from the cache.
func forget(src, dst netip.Addr) error {
	_, err := askMetrics(metricsDelete, src, dst)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
