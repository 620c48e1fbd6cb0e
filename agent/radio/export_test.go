package radio

// Unsettled is a driver that does not wait for an interface to have joined.
func Unsettled(name string) Driver {
	return map[string]Driver{Madwifi: madwifi{}, NL80211: nl80211{}}[name]
}

// What the parsers make of a tool's output.
var (
	ParseIwconfig = parseIwconfig
	ParseIwpriv   = parseIwpriv
)
