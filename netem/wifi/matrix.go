package wifi

import (
	"fmt"
	"math"
)

// NewMatrixChannel builds a channel from explicit matrices, indexed [from][to].
// delivery is the probability that a data frame alone on the channel is
// received, whatever its length; control frames are received wherever it is
// above 0. sense says whether to's carrier sense hears from (nil: wherever
// delivery is above 0); interfere whether from's frames destroy what to receives
// at the same time (nil: wherever it senses or delivers). There is no capture.
// The diagonals are ignored.
func NewMatrixChannel(delivery [][]float64, sense, interfere [][]bool) (*Channel, error) {
	n := len(delivery)
	if n == 0 {
		return nil, fmt.Errorf("channel: the delivery matrix is empty: want at least one node")
	}
	if err := square("delivery", n, delivery); err != nil {
		return nil, err
	}
	if sense != nil {
		if err := square("sense", n, sense); err != nil {
			return nil, err
		}
	}
	if interfere != nil {
		if err := square("interfere", n, interfere); err != nil {
			return nil, err
		}
	}
	c := &Channel{n: n, threshold: true, senseAt: 1, capture: math.Inf(1), links: make([][]link, n), snr: make([]float64, n*n)}
	for i := range delivery {
		for j, p := range delivery[i] {
			if i == j {
				continue
			}
			if !(p >= 0 && p <= 1) {
				return nil, fmt.Errorf("channel: delivery[%d][%d] = %v: want a probability, 0…1", i, j, p)
			}
			senses := p > 0
			if sense != nil {
				senses = sense[i][j]
			}
			hurts := senses || p > 0
			if interfere != nil {
				hurts = interfere[i][j]
			}
			c.snr[i*n+j] = math.Inf(-1)
			if p > 0 {
				c.snr[i*n+j] = 0
			}
			if p == 0 && !senses && !hurts {
				continue
			}
			l := link{to: int32(j), decodes: p > 0, prob: p}
			if hurts {
				l.power = powerUnit
			}
			if senses {
				l.sense = powerUnit
			}
			c.links[i] = append(c.links[i], l)
		}
	}
	return c, nil
}

func square[T any](name string, n int, m [][]T) error {
	if len(m) != n {
		return fmt.Errorf("channel: the %s matrix has %d rows, want %d", name, len(m), n)
	}
	for i, row := range m {
		if len(row) != n {
			return fmt.Errorf("channel: row %d of the %s matrix has %d entries, want %d", i, name, len(row), n)
		}
	}
	return nil
}
