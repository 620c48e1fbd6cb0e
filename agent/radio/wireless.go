package radio

import "github.com/hopbed/hopbed/netem/vtime"

// Wireless is what nl80211 tells of an interface and its phy. A nil field is not
// told.
type Wireless struct {
	Phy       string
	PhyIndex  int
	Mode      Mode   // "monitor" may be one, too; "" = one that this package has no name for
	Network   string // of an IBSS, access point or association
	BSSID     string // of the IBSS that it is in, or of its access point
	Frequency int    // MHz; 0 = on no channel
	Width     string // of the channel, as iw takes it: "NOHT", "HT40+"; "" = on none
	// TxPower is the power in use, which is the wanted one or what the regulatory
	// domain and the channel leave of it.
	TxPower *vtime.DBm
	// RetryShort is dot11ShortRetryLimit: attempts, the first included.
	RetryShort, RetryLong *int
	RTS, Fragment         *vtime.Bytes // negative = off
	// Rates are those that data may be sent at, and Bands those that the phy has, by
	// band: 2 or 5 GHz. Rates has no entry where debugfs does not show it.
	Rates, Bands map[int][]vtime.BitRate
	Forwards     *bool // mesh_fwding
}
