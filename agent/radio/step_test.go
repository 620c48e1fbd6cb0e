package radio_test

import (
	"os/exec"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
	"github.com/hopbed/hopbed/internal/testenv"
)

// What --dry-run prints means to a shell what is run without one.
func TestStepCanBeTyped(t *testing.T) {
	testenv.Need(t, testenv.Program("sh"))
	for _, word := range []string{"hop", "a b", "it's", "$(reboot)", "`reboot`", "a;b&c|d", "*", "~", "!", "", "#", "a=b", `back\slash`, "<x>"} {
		line := radio.Step{Argv: []string{"printf", "%s", word}}.String()
		out, err := exec.Command("sh", "-c", line).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s: %q, %v; want %q", line, out, err, word)
		}
	}
	line := radio.Step{Argv: []string{"cat"}, Input: "ssid=$(reboot)\nx=`y`\n"}.String()
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil || string(out) != "ssid=$(reboot)\nx=`y`\n" {
		t.Errorf("%s: %q, %v", line, out, err)
	}
}

// A name that a tool would take for an option is refused.
func TestNetworkIsNoOption(t *testing.T) {
	for _, c := range []radio.Config{hopLab(), meshLab()} {
		for _, name := range []string{"-w", "--help", "new\nline", `quo"te`, "012345678901234567890123456789012"} {
			c.Network = name
			if steps, err := radio.Plan(c); err == nil {
				t.Errorf("%s: the network %q is planned: %v", c.Driver, name, steps)
			}
		}
	}
}

// The configuration of an access point, whole.
func TestAccessPointPlan(t *testing.T) {
	p := radiotest.NewPhy(t)
	if _, _, err := configure(t, p, apLab()); err != nil {
		t.Fatal(err)
	}
	want := `interface=wlan0
driver=nl80211
ctrl_interface=/run/hopbed-hostapd
ssid=hop
channel=6
hw_mode=b
wmm_enabled=1
basic_rates=20
tx_queue_data3_aifs=7
tx_queue_data3_cwmin=31
tx_queue_data3_cwmax=1023
tx_queue_data3_burst=8.1
wmm_ac_bk_aifs=7
wmm_ac_bk_cwmin=5
wmm_ac_bk_cwmax=10
wmm_ac_bk_txop_limit=253
`
	if p.Hostapd != want {
		t.Errorf("hostapd is given\n%swant\n%s", p.Hostapd, want)
	}
}
