package radio_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
)

// The files are what iwconfig wrote in the cases that their names say: MadWifi's
// in the form of published transcripts, that of the simulated radio as
// wireless-tools 30 wrote it on Linux 6.12. Addresses and names are ours.
func TestParseIwconfig(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"madwifi-adhoc-fixed": {
			"network": "hop", "mode": "adhoc", "channel": "6", "bssid": "02:ca:fe:00:00:01", "rate": "11mbit", "tx-power": "15dBm",
			"retries": "off", "rts": "500B", "fragment": "512B",
		},
		"madwifi-managed": {
			"network": "office", "mode": "station", "channel": "10", "bssid": "02:1b:2f:a1:a2:d6", "rate": "auto", "tx-power": "auto",
			"retries": "off", "rts": "off", "fragment": "off",
		},
		"madwifi-master": {
			"network": "any", "mode": "ap", "channel": "2", "bssid": "02:0b:6b:34:88:94", "rate": "auto", "tx-power": "auto",
			"retries": "off", "rts": "off", "fragment": "off",
		},
		"madwifi-idle": {
			"network": "", "mode": "station", "channel": "auto", "bssid": "none", "rate": "auto", "tx-power": "auto",
			"retries": "off", "rts": "off", "fragment": "off",
		},
		"ipw-retry": {
			"network": "office", "mode": "station", "channel": "10", "bssid": "02:13:10:62:9b:08", "rate": "54mbit", "tx-power": "20dBm",
			"retries": "7", "rts": "off", "fragment": "off",
		},
		"hwsim-ibss": {
			"network": "hop", "mode": "adhoc", "channel": "6", "bssid": "02:ca:fe:00:00:01", "tx-power": "20dBm",
			"retries": "8", "rts": "500B", "fragment": "512B",
		},
	} {
		t.Run(file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", "iwconfig-"+file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := radio.ParseIwconfig(string(b))
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(map[string]string(got), want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
	for _, out := range []string{"", "eth0      no wireless extensions.\n\n", "ath9      No such device\n"} {
		if got, err := radio.ParseIwconfig(out); err == nil {
			t.Errorf("%q: got %v, want an error", out, got)
		}
	}
}

func TestParseIwpriv(t *testing.T) {
	for _, x := range []struct {
		out, command, want string
		ok                 bool
	}{
		{"ath0      get_cwmin:5  \n", "get_cwmin", "5", true},
		{"ath0      get_txoplimit:8160  \n", "get_txoplimit", "8160", true},
		{"ath0      get_mode:11b\n", "get_mode", "11b", true},
		{"ath0      get_cwmax:10  \n", "get_cwmin", "", false},
		{"ath0      no private ioctls.\n\n", "get_cwmin", "", false},
		{"ath0      get_mode:\n", "get_mode", "", false},
		{"", "get_mode", "", false},
	} {
		if got, ok := radio.ParseIwpriv(x.out, x.command); got != x.want || ok != x.ok {
			t.Errorf("%q of %s: got %q, %v; want %q, %v", x.out, x.command, got, ok, x.want, x.ok)
		}
	}
}
