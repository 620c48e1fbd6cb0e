package radio

import (
	"context"

	"github.com/hopbed/hopbed/agent/undo"
)

// passive is a driver that leaves the interface alone: the emulated medium,
// which is configured where it runs, and a wired interface. What an experiment
// wants of a radio is reported as not applied, so that results show it; what the
// lab itself says of a radio contradicts the driver that it names, and is
// refused.
type passive struct{ name string }

func (d passive) Name() string { return d.name }

func (d passive) Plan(c Config) ([]Step, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	for _, v := range c.values() {
		switch v.name {
		case settingMode, settingNetwork, settingBSSID, settingChannel:
			return nil, c.fail(Unsupported, v.name, v.text, "the driver "+d.name+" leaves the interface as it is",
				"remove the key from the inventory, or name the driver that sets it: "+Madwifi+", "+NL80211)
		}
	}
	return nil, nil
}

func (d passive) Probe(_ context.Context, h Host, c Config) error {
	if _, err := h.Interface(c.Interface); err != nil {
		return c.fail(Unavailable, "", "", err.Error(), "correct the interface in the inventory")
	}
	return nil
}

func (d passive) Apply(context.Context, Host, Config, undo.Push) error { return nil }

func (d passive) Readback(_ context.Context, _ Host, c Config) ([]Setting, error) {
	why := "driver none: the interface is left as it is"
	if d.name == Emulated {
		why = "driver emulated: the medium that emulates the radio has the setting"
	}
	var out []Setting
	for _, v := range c.values() {
		out = append(out, Setting{Name: v.name, Wanted: v.text, State: NotApplied, Why: why})
	}
	return out, nil
}
