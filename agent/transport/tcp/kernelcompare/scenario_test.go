package kernelcompare

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// scenario is one bulk flow over one bottleneck.
type scenario struct {
	cc    string
	rate  vtime.BitRate
	rtt   vtime.Duration // propagation, both ways
	queue int            // packets, in each direction, the one in service included
	loss  float64        // Bernoulli, data direction, on entry
	back  float64        // the same for the ACKs
	sack  bool
	flows int     // at once; 0 = 1
	secs  float64 // length of the measured interval
	warm  float64 // left out before it
}

func (s scenario) String() string {
	t := fmt.Sprintf("%-5s %7s rtt %-5s q %-3d loss %.4g", s.cc, s.rate, s.rtt, s.queue, s.loss)
	if s.back > 0 {
		t += fmt.Sprintf(" ackloss %.2g", s.back)
	}
	if !s.sack {
		t += " nosack"
	}
	if s.flows > 1 {
		t += fmt.Sprintf(" flows %d", s.flows)
	}
	return t
}

// result is what either side measured over the interval.
type result struct {
	goodput  float64 // bit/s
	retrans  float64 // bytes retransmitted / bytes sent
	timeouts float64 // per minute
	srtt     float64 // ms, mean of 100 ms samples
	cwnd     float64 // segments, mean of the same
	acks     float64 // ACKs per data segment received
	tlp      float64 // probes per minute; −1 = not known
	drops    float64 // share of data segments lost in the queue
	undos    float64
	reord    float64
	late     float64 // ms, the latest delivery of the kernel's forwarder
}

func mean(rs []result) result {
	var m result
	for _, r := range rs {
		m.goodput += r.goodput
		m.retrans += r.retrans
		m.timeouts += r.timeouts
		m.srtt += r.srtt
		m.cwnd += r.cwnd
		m.acks += r.acks
		m.tlp += r.tlp
		m.drops += r.drops
		m.undos += r.undos
		m.reord += r.reord
		m.late += r.late
	}
	n := float64(len(rs))
	return result{m.goodput / n, m.retrans / n, m.timeouts / n, m.srtt / n, m.cwnd / n, m.acks / n, m.tlp / n, m.drops / n, m.undos / n, m.reord / n, m.late / n}
}

func (r result) row(who string) string {
	return fmt.Sprintf("   %-6s goodput %7.3f Mb/s  retr %6.3f%%  rto/min %6.2f  tlp/min %6.2f  srtt %7.2f ms  cwnd %6.1f  acks/seg %.3f  qdrop %6.3f%% undo %.2f reord %.1f",
		who, r.goodput/1e6, r.retrans*100, r.timeouts, r.tlp, r.srtt, r.cwnd, r.acks, r.drops*100, r.undos, r.reord)
}

func ratio(a, b float64) string {
	if b == 0 {
		if a == 0 {
			return "   =  "
		}
		return "  n/0 "
	}
	return fmt.Sprintf("%6.3f", a/b)
}

// line is one row of the table of ratios.
func line(s scenario, model, kernel []result) string {
	m, k := mean(model), mean(kernel)
	return fmt.Sprintf("| %s | %.2f | %.2f | %s | %s | %s | %s / %s |", s, m.goodput/1e6, k.goodput/1e6,
		ratio(m.goodput, k.goodput), ratio(m.retrans, k.retrans), ratio(m.srtt, k.srtt), short(m.timeouts), short(k.timeouts))
}

func short(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }

// compare renders one scenario: both means and their ratios.
func compare(s scenario, model, kernel []result) string {
	m, k := mean(model), mean(kernel)
	var b strings.Builder
	fmt.Fprintf(&b, "%v   (model ×%d, kernel ×%d)\n%s\n%s\n", s, len(model), len(kernel), m.row("model"), k.row("kernel"))
	fmt.Fprintf(&b, "   RATIO  goodput %s  retransmitted %s  timeouts %s  srtt %s  cwnd %s\n",
		ratio(m.goodput, k.goodput), ratio(m.retrans, k.retrans), ratio(m.timeouts, k.timeouts), ratio(m.srtt, k.srtt), ratio(m.cwnd, k.cwnd))
	return b.String()
}
