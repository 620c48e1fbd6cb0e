package celltrace

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Outages are the times in which the cell serves nobody: cell changes, channel
// switching, no coverage. They follow from the seed alone, so that a downlink and
// an uplink of the same seed are cut at the same times.
type Outages struct {
	// Every is the mean time between the end of one and the begin of the next,
	// exponential; 0 = there are none.
	Every vtime.Duration
	// Mean is the mean length, exponential.
	Mean vtime.Duration
}

// HSDPA describes a downlink (HS-DSCH).
type HSDPA struct {
	// SINR is the median over the shadowing of the mean signal to interference and
	// noise ratio of the HS-DSCH, after despreading, as the CQI formula has it.
	SINR vtime.Decibel
	// Shadowing is the standard deviation of the slow fading, log-normal.
	Shadowing vtime.Decibel
	// ShadowingTime is the time in which its correlation falls to 1/e.
	ShadowingTime vtime.Duration
	// Doppler is the maximum Doppler frequency of the fast fading in hertz: speed
	// over wavelength; 0 = no fast fading.
	Doppler float64
	// Others is the mean number of other users who have data waiting; they come and
	// go, and the cell serves everybody in turn.
	Others float64
	// Stay is the mean time that one of them stays.
	Stay vtime.Duration
	Outages
}

// EDCH describes an uplink (E-DCH), whose power control follows the fast fading
// and whose rate is what the base station grants.
type EDCH struct {
	// Grant is the median of the granted rate.
	Grant vtime.BitRate
	// Spread is the standard deviation of the grant's natural logarithm.
	Spread float64
	// GrantTime is the time in which its correlation falls to 1/e.
	GrantTime vtime.Duration
	Outages
}

// DefaultHSDPA is a stationary user with a card of category 8 in a cell with some
// load: 1.2 to 2 Mb/s over ten minutes. Sources of the values: DESIGN.md.
func DefaultHSDPA() HSDPA {
	return HSDPA{
		SINR: 3, Shadowing: 4, ShadowingTime: 20 * vtime.Second, Doppler: 5.8,
		Others: 1, Stay: 10 * vtime.Second, Outages: DefaultOutages(),
	}
}

// DefaultEDCH is an uplink of about 0.9 Mb/s.
func DefaultEDCH() EDCH {
	return EDCH{Grant: 1_000_000, Spread: 0.15, GrantTime: 5 * vtime.Second, Outages: DefaultOutages()}
}

// DefaultOutages are of a second, about one in a minute.
func DefaultOutages() Outages { return Outages{Every: vtime.Minute, Mean: vtime.Second} }

// MaxLength is the longest stretch that is made.
const MaxLength = 30 * vtime.Minute

func (o Outages) validate() error {
	switch {
	case o.Every < 0 || o.Mean < 0:
		return fmt.Errorf("celltrace: outages of %v every %v: negative", o.Mean, o.Every)
	case o.Every > 0 && o.Mean == 0:
		return fmt.Errorf("celltrace: outages every %v without a length", o.Every)
	}
	return nil
}

func length(d vtime.Duration) error {
	if d < vtime.Second || d > MaxLength {
		return fmt.Errorf("celltrace: length %v: want %v to %v", d, vtime.Second, MaxLength)
	}
	return nil
}

// Validate returns what is wrong with the description, naming the value.
func (c *HSDPA) Validate() error {
	switch {
	case !(c.SINR >= -20 && c.SINR <= 40):
		return fmt.Errorf("celltrace: SINR %v: want -20dB to 40dB", c.SINR)
	case !(c.Shadowing >= 0 && c.Shadowing <= 20):
		return fmt.Errorf("celltrace: shadowing %v: want 0dB to 20dB", c.Shadowing)
	case c.Shadowing > 0 && c.ShadowingTime < tti:
		return fmt.Errorf("celltrace: correlation time of the shadowing %v: want %v or more", c.ShadowingTime, tti)
	case !(c.Doppler >= 0 && c.Doppler <= maxDoppler):
		return fmt.Errorf("celltrace: Doppler frequency %v Hz: want 0 to %d", c.Doppler, maxDoppler)
	case !(c.Others >= 0 && c.Others <= 100):
		return fmt.Errorf("celltrace: %v other users: want 0 to 100", c.Others)
	case c.Others > 0 && c.Stay < vtime.Second:
		return fmt.Errorf("celltrace: other users stay for %v: want %v or more", c.Stay, vtime.Second)
	}
	return c.Outages.validate()
}

// Validate returns what is wrong with the description, naming the value.
func (c *EDCH) Validate() error {
	switch {
	case c.Grant < 10_000 || c.Grant > 2_000_000:
		return fmt.Errorf("celltrace: grant %v: want 10kbit to 2mbit", c.Grant)
	case !(c.Spread >= 0 && c.Spread <= 1):
		return fmt.Errorf("celltrace: spread of the grant %v: want 0 to 1", c.Spread)
	case c.Spread > 0 && c.GrantTime < edchTTI:
		return fmt.Errorf("celltrace: correlation time of the grant %v: want %v or more", c.GrantTime, edchTTI)
	}
	return c.Outages.validate()
}
