package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"
)

// HopOptions configure Hop.
type HopOptions struct {
	Common
	Span   time.Duration // measured, each; 0 = 5 s
	Repeat int           // rounds; 0 = 1
}

// HopResult is one row of the table.
type HopResult struct {
	Name    string
	Goodput float64 // payload bits per second that arrived
	CPU     float64 // seconds of processor time of both ends' processes per second
	Note    string
}

// The two ends' addresses on the veth pair, and its interfaces.
const (
	vethName     = "hb0"
	vethLeft     = "10.77.0.1"
	vethRight    = "10.77.0.2"
	hopWarmup    = 500 * time.Millisecond
	iperfPayload = 1400 // as Hop's packets have
)

// Hop measures what Hop carries between two namespaces that a veth pair joins
// (MTU 1500, no rate, no delay), beside iperf3's TCP and UDP, or a TCP flow of our
// own where iperf3 is not installed. One flow at a time, one after the other, so
// that each has the machine; the bytes count that have arrived in the measured
// interval. A veth pair passes joined packets (GSO) on as they are: what is
// measured is what the ends' processors can do, not a wire.
func Hop(ctx context.Context, w io.Writer, o HopOptions) (all []HopResult, err error) {
	if o.Span == 0 {
		o.Span = 5 * time.Second
	}
	l, err := startNodes(ctx, o.Common, 2, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := joinByVeth(l); err != nil {
		return nil, err
	}
	iperf, lack := iperfVersion(ctx)
	runs := []struct {
		name string
		run  func() (HopResult, error)
	}{
		{"hop", func() (HopResult, error) { return l.hop(ctx, o.Span, false) }},
		{"hop, single datagrams", func() (HopResult, error) { return l.hop(ctx, o.Span, true) }},
		{"tcp (own)", func() (HopResult, error) { return l.ownTCP(ctx, o.Span) }},
	}
	if lack == nil {
		runs = append(runs, []struct {
			name string
			run  func() (HopResult, error)
		}{
			{"iperf3 tcp", func() (HopResult, error) { return l.iperf(ctx, o.Span) }},
			{"iperf3 udp", func() (HopResult, error) {
				return l.iperf(ctx, o.Span, "-u", "-b", "0", "-l", fmt.Sprint(iperfPayload))
			}},
		}...)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { err = errors.Join(err, tw.Flush()) }()
	fmt.Fprintln(tw, "flow\tgoodput\tof hop\tprocessors\ts per GB\t")
	for range max(1, o.Repeat) {
		var hop float64
		for _, r := range runs {
			x, err := r.run()
			if err != nil {
				return all, fmt.Errorf("%s: %w", r.name, err)
			}
			x.Name = r.name
			all = append(all, x)
			if hop == 0 {
				hop = x.Goodput
			}
			fmt.Fprintf(tw, "%s\t%.2f Gb/s\t%.2f\t%.2f\t%.2f\t%s\n", x.Name, x.Goodput/1e9, x.Goodput/hop, x.CPU, x.CPU/(x.Goodput/8e9), x.Note)
		}
	}
	if lack != nil {
		fmt.Fprintln(tw, lack)
	} else {
		fmt.Fprintln(tw, iperf)
	}
	return all, nil
}

// iperfVersion says what iperf3 is installed, or that there is none.
func iperfVersion(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		return "", errors.New("iperf3: unavailable: install iperf3 (apt-get install iperf3)")
	}
	out, err := exec.CommandContext(ctx, "iperf3", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("iperf3: unavailable: iperf3 --version: %w", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first, nil
}

// joinByVeth puts one end of a veth pair into each namespace; nothing appears in
// our own. It goes with the namespaces.
func joinByVeth(l *lab) error {
	if _, err := l.nodes[0].ask(order{Hop: &hopOrder{Join: l.nodes[1].h.PID()}}); err != nil {
		return err
	}
	return l.each(func(i int) error {
		_, err := l.nodes[i].ask(order{Hop: &hopOrder{Up: []string{vethLeft, vethRight}[i]}})
		return err
	})
}

// reading is what both ends have counted at a moment.
type reading struct {
	at       time.Time
	received uint64
	cpu      time.Duration
}

func (l *lab) read() (reading, error) {
	r := reading{at: time.Now()}
	for _, n := range l.nodes {
		a, err := n.ask(order{Count: true})
		if err != nil {
			return r, err
		}
		if a.Failed != "" {
			return r, fmt.Errorf("node %s: %s", n.h.Name(), a.Failed)
		}
		r.received += a.Received
		r.cpu += a.CPU
	}
	return r, nil
}

// between measures what arrives while a flow is under way.
func (l *lab) between(ctx context.Context, span time.Duration) (HopResult, error) {
	if err := pause(ctx, hopWarmup); err != nil {
		return HopResult{}, err
	}
	a, err := l.read()
	if err == nil {
		err = pause(ctx, span)
	}
	if err != nil {
		return HopResult{}, err
	}
	b, err := l.read()
	took := b.at.Sub(a.at).Seconds()
	return HopResult{Goodput: float64(b.received-a.received) * 8 / took, CPU: (b.cpu - a.cpu).Seconds() / took}, err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hop measures one stream of hopnet.
func (l *lab) hop(ctx context.Context, span time.Duration, single bool) (HopResult, error) {
	if _, err := l.nodes[1].ask(order{Hop: &hopOrder{Serve: true, Single: single}}); err != nil {
		return HopResult{}, err
	}
	if _, err := l.nodes[0].ask(order{Hop: &hopOrder{Send: vethRight, Single: single}}); err != nil {
		return HopResult{}, err
	}
	r, err := l.between(ctx, span)
	for _, n := range l.nodes {
		a, err2 := n.ask(order{Hop: &hopOrder{Stop: true}})
		err = errors.Join(err, err2)
		if a.Note != "" {
			r.Note = a.Note
		}
	}
	return r, err
}

// ownTCP measures a TCP flow of 64 KiB writes with the kernel's congestion control.
func (l *lab) ownTCP(ctx context.Context, span time.Duration) (HopResult, error) {
	if _, err := l.nodes[1].ask(order{Hop: &hopOrder{TCPServe: true}}); err != nil {
		return HopResult{}, err
	}
	if _, err := l.nodes[0].ask(order{Hop: &hopOrder{TCPSend: vethRight}}); err != nil {
		return HopResult{}, err
	}
	r, err := l.between(ctx, span)
	for _, n := range l.nodes {
		_, err2 := n.ask(order{Hop: &hopOrder{Stop: true}})
		err = errors.Join(err, err2)
	}
	return r, err
}

// iperf measures a flow of iperf3, by what its server counts.
func (l *lab) iperf(ctx context.Context, span time.Duration, args ...string) (HopResult, error) {
	if _, err := l.nodes[1].ask(order{Hop: &hopOrder{Program: []string{"iperf3", "-s", "-1", "-J"}}}); err != nil {
		return HopResult{}, err
	}
	if err := pause(ctx, 200*time.Millisecond); err != nil { // the server binds
		return HopResult{}, err
	}
	client := append([]string{"iperf3", "-c", vethRight, "-J", "-t", fmt.Sprint(max(1, int(span.Seconds())))}, args...)
	if _, err := l.nodes[0].ask(order{Hop: &hopOrder{Program: client}}); err != nil {
		return HopResult{}, err
	}
	limit := span + 20*time.Second
	var server string
	r := HopResult{}
	for i := range 2 {
		a, err := l.nodes[i].ask(order{Hop: &hopOrder{Wait: limit}})
		if err != nil {
			return r, err
		}
		r.CPU += a.CPU.Seconds()
		server = a.Output
	}
	bps, lost, seconds, err := iperfResult(server)
	if seconds > 0 {
		r.CPU /= seconds
	}
	r.Goodput = bps
	if lost > 0 {
		r.Note = fmt.Sprintf("%.1f %% of the datagrams lost", lost)
	}
	return r, err
}

// iperfResult reads what iperf3 -J of the server says. Text may stand before it.
func iperfResult(text string) (bps, lostPercent, seconds float64, err error) {
	i := strings.IndexByte(text, '{')
	if i < 0 {
		return 0, 0, 0, fmt.Errorf("iperf3 gave no JSON: %q", text[:min(len(text), 200)])
	}
	type sum struct {
		Bytes   float64  `json:"bytes"`
		Seconds float64  `json:"seconds"`
		Lost    *float64 `json:"lost_percent"`
	}
	var v struct {
		Error string `json:"error"`
		End   struct {
			Received *sum `json:"sum_received"`
			Sum      *sum `json:"sum"`
		} `json:"end"`
	}
	if err := json.NewDecoder(strings.NewReader(text[i:])).Decode(&v); err != nil {
		return 0, 0, 0, fmt.Errorf("iperf3: %w", err)
	}
	if v.Error != "" {
		return 0, 0, 0, fmt.Errorf("iperf3: %s", v.Error)
	}
	s := v.End.Received
	if s == nil || s.Bytes == 0 {
		s = v.End.Sum
	}
	if s == nil || s.Seconds <= 0 || s.Bytes <= 0 {
		return 0, 0, 0, errors.New("iperf3: its server has counted nothing")
	}
	bps = s.Bytes * 8 / s.Seconds
	if s.Lost != nil {
		lostPercent = *s.Lost
		if v.End.Received == nil || v.End.Received.Bytes == 0 {
			bps *= 1 - lostPercent/100 // the sum counts what was sent
		}
	}
	return bps, lostPercent, s.Seconds, nil
}
