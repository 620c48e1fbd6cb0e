package render

import "github.com/hopbed/hopbed/reports/dataset"

type jsonAirtime struct {
	Transport string `json:"transport"`
	Node      string `json:"node"`
	Tx        number `json:"tx_share"`
	Rx        number `json:"rx_share"`
	Busy      number `json:"busy_share"`
	Idle      number `json:"idle_share"`
}

// jsonPipe is one direction of a wired link; shares are of the packets that came
// to it, busy of the measured interval.
type jsonPipe struct {
	Transport string `json:"transport"`
	Pipe      int    `json:"pipe"`
	From      string `json:"from"`
	To        string `json:"to"`
	Delivered number `json:"delivered_bps"`
	Lost      number `json:"lost_share"`
	Dropped   number `json:"drops_queue_share"`
	Busy      number `json:"busy_share"`
	Mean      number `json:"queue_mean_packets"`
	Max       number `json:"queue_max_packets"`
}

// networkJSON fills in what nodes and wired links did.
func (g *Group) networkJSON(out *jsonGroup) {
	for _, a := range g.Airtime {
		for _, n := range a.Nodes {
			out.Airtime = append(out.Airtime, airtimeJSON(a.Transport, n))
		}
	}
	for _, p := range g.Pipes {
		for _, u := range p.Pipes {
			out.Pipes = append(out.Pipes, jsonPipe{p.Transport, u.Pipe, u.From, u.To, number(u.DeliveredBps), number(u.Lost), number(u.Dropped), number(u.Busy), number(u.QueueMeanPackets), number(u.QueueMaxPackets)})
		}
	}
}

func airtimeJSON(transport string, n dataset.Airtime) jsonAirtime {
	return jsonAirtime{transport, n.Name, number(n.Tx), number(n.Rx), number(n.Busy), number(n.Idle)}
}
