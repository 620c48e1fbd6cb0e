package radio

import "github.com/hopbed/hopbed/netem/vtime"

// The drivers.
const (
	Madwifi  = "madwifi"  // iwconfig, iwpriv, wlanconfig
	NL80211  = "nl80211"  // iw, and hostapd for access points
	Emulated = "emulated" // the medium of this program: set there, nothing to do on the node
	None     = "none"     // a wired interface, or a radio that is left as it is
)

// Mode is what the interface is made into.
type Mode string

// The modes.
const (
	ModeAdhoc   Mode = "adhoc"   // IBSS
	ModeAhdemo  Mode = "ahdemo"  // MadWifi's IBSS without beacons, which cannot split
	ModeMesh    Mode = "mesh"    // 802.11s, forwarding off
	ModeStation Mode = "station" // joins the access point of the same network
	ModeAP      Mode = "ap"
)

// Config is what an experiment and a lab want of a node's radio. A zero or nil
// field is left as it is.
type Config struct {
	Driver    string `json:"driver"`
	Interface string `json:"interface"`
	// Device is what the interface is an interface of: MadWifi's base device
	// (empty = "wifi0"), or the phy ("phy0"; empty = the interface's own).
	Device string `json:"device,omitempty"`
	// Of the lab.
	Mode    Mode       `json:"mode,omitempty"`
	Network string     `json:"network,omitempty"` // ESSID or mesh id: 1 to 32 printable ASCII characters
	BSSID   string     `json:"bssid,omitempty"`   // fixed cell of an IBSS, so that it cannot split
	Channel int        `json:"channel,omitempty"` // IEEE channel number
	TxPower *vtime.DBm `json:"tx_power,omitempty"`
	// Of the experiment.
	Standard  string        `json:"standard,omitempty"`   // 802.11b, 802.11g, 802.11a
	Rate      vtime.BitRate `json:"rate,omitempty"`       // of unicast data
	BasicRate vtime.BitRate `json:"basic_rate,omitempty"` // of acknowledgements and broadcasts
	Preamble  string        `json:"preamble,omitempty"`   // long, short
	Retries   *int          `json:"retries,omitempty"`    // retransmissions of a frame, after its first attempt
	RTS       *vtime.Bytes  `json:"rts,omitempty"`        // threshold; negative = off
	Fragment  *vtime.Bytes  `json:"fragment,omitempty"`   // threshold; negative = off
	// Queues are the access categories in the order BK, BE, VI, VO.
	Queues [4]Queue `json:"queues,omitzero"`
}

// Queue is one access category; nil = left as it is.
type Queue struct {
	AIFS  *int            `json:"aifs,omitempty"`  // slots after SIFS
	CWMin *int            `json:"cwmin,omitempty"` // 2^n − 1
	CWMax *int            `json:"cwmax,omitempty"`
	TXOP  *vtime.Duration `json:"txop_ns,omitempty"`
	NoAck *bool           `json:"no_ack,omitempty"`
	Limit *int            `json:"limit,omitempty"` // packets
}

// State says what is known of a setting.
type State string

// The states of a setting. One that did not take is an error instead.
const (
	Verified   State = "verified"   // read back and equal
	Unverified State = "unverified" // accepted, but the driver cannot be asked
	// NotApplied: nothing was done on the node, because its driver is one that
	// leaves the interface alone (none, emulated).
	NotApplied State = "not-applied"
)

// Setting is the evidence of one parameter.
type Setting struct {
	Name   string `json:"name"` // "rate", "bk.txop"
	Wanted string `json:"wanted"`
	Got    string `json:"got,omitempty"`
	State  State  `json:"state"`
	Why    string `json:"why,omitempty"` // of all but verified ones; of these where the driver shows them otherwise
}
