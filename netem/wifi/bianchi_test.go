package wifi

import "math"

// slotModel is the saturated cell of Bianchi (IEEE JSAC 18(3), 2000) with finite
// retries (Wu et al., INFOCOM 2002; Chatzimisios et al., 2003): n stations that
// hear each other, every one always with a frame. It knows durations only and
// shares no code with the medium: it is the independent referee.
type slotModel struct {
	n           int
	window      int     // CWmin+1
	maxWindow   int     // CWmax+1
	retries     int     // retransmissions after the first attempt
	slot        float64 // all durations in µs
	success     float64 // data + SIFS + ACK + DIFS
	collision   float64 // data + what all wait before the next slot
	payloadBits float64
}

// tau is the probability that a station transmits in a slot, given the
// probability p that a transmission collides. A frame goes through stages 0…R:
// stage i is reached with p^i and lasts (W_i+1)/2 slots on average, the last of
// which is the transmission.
func (s slotModel) tau(p float64) float64 {
	var sends, slots float64
	w := float64(s.window)
	reach := 1.0
	for i := 0; i <= s.retries; i++ {
		sends += reach
		slots += reach * (math.Min(w, float64(s.maxWindow)) + 1) / 2
		reach *= p
		w *= 2
	}
	return sends / slots
}

// fixedPoint solves p = 1−(1−τ(p))^(n−1); τ falls with p, so the crossing is
// unique.
func (s slotModel) fixedPoint() (p, tau float64) {
	lo, hi := 0.0, 1.0
	for i := 0; i < 200; i++ {
		p = (lo + hi) / 2
		tau = s.tau(p)
		if 1-math.Pow(1-tau, float64(s.n-1)) > p {
			lo = p
		} else {
			hi = p
		}
	}
	return p, tau
}

// throughput is the payload rate of the whole cell in Mb/s.
func (s slotModel) throughput() float64 {
	_, tau := s.fixedPoint()
	n := float64(s.n)
	some := 1 - math.Pow(1-tau, n)
	one := n * tau * math.Pow(1-tau, n-1)
	return one * s.payloadBits / ((1-some)*s.slot + one*s.success + (some-one)*s.collision)
}

// bianchi11b is a cell of legacy 802.11b stations at 11 Mb/s: long preamble,
// ACK at 2 Mb/s, packets of 1500 bytes with 1472 bytes of UDP payload, MAC header
// of 24 or 26 bytes. A collision costs as much as a success: bystanders wait EIFS, the
// colliding stations ACKTimeout and DIFS.
func bianchi11b(n, header int) slotModel {
	const preamble, sifs, difs = 192, 10, 50
	data := preamble + math.Ceil(float64(1500+8+header+4)*8/11)
	ack := preamble + 14*8/2.0
	t := data + sifs + ack + difs
	return slotModel{n: n, window: 32, maxWindow: 1024, retries: 7, slot: 20, success: t, collision: t, payloadBits: 1472 * 8}
}

// bianchi11g is the same for 802.11g at 54 Mb/s with ACK at 24 Mb/s.
func bianchi11g(n, header int) slotModel {
	const sifs, difs, extension = 10, 28, 6
	data := 20 + 4*math.Ceil(float64(16+8*(1500+8+header+4)+6)/216) + extension
	ack := 20 + 4*math.Ceil((16+8*14+6)/96.0) + extension
	t := data + sifs + ack + difs
	return slotModel{n: n, window: 16, maxWindow: 1024, retries: 7, slot: 9, success: t, collision: t, payloadBits: 1472 * 8}
}
