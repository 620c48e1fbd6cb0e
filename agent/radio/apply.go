package radio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/agent/undo"
)

// state is what a driver's settings were or are: by name, in the textual form of
// Config.values. What cannot be read is missing.
type state map[string]string

// change is a step, and what a driver knows of it beside.
type change struct {
	Step
	// met tells whether Unless holds; nil where there is none.
	met func(before state) bool
	// undo returns the commands that take the step back, in the order in which they
	// are run; nil where nothing needs to be.
	undo func(before state) [][]string
	// remedy is what to do when the driver refuses, where the kernel's words do not say it.
	remedy string
	// after does what no command line can tell beforehand.
	after func(ctx context.Context, h Host) error
}

// plan returns the visible part.
func plan(cs []change) []Step {
	out := make([]Step, len(cs))
	for i := range cs {
		out[i] = cs[i].Step
	}
	return out
}

// apply carries out changes in order.
func (c *Config) apply(ctx context.Context, h Host, cs []change, before state, push undo.Push) error {
	for i := range cs {
		s := &cs[i]
		if s.met != nil && s.met(before) {
			continue
		}
		if s.undo != nil {
			if err := c.pushUndo(h, s, before, push); err != nil {
				return err
			}
		}
		argv, err := c.resolve(h, s.Argv)
		if err != nil {
			return err
		}
		if _, err := h.Run(ctx, argv, s.Input); err != nil {
			return c.refused(s, err)
		}
		if s.after != nil {
			if err := s.after(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushUndo pushes the records of a step in the reverse of the order in which
// they are to be run: the newest is undone first.
func (c *Config) pushUndo(h Host, s *change, before state, push undo.Push) error {
	cmds := s.undo(before)
	for i := len(cmds) - 1; i >= 0; i-- {
		argv, err := c.resolve(h, cmds[i])
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%s of %s: %s", strings.Join(s.Settings, ", "), c.Interface, strings.Join(argv, " "))
		if len(s.Settings) == 0 {
			what = fmt.Sprintf("state of %s: %s", c.Interface, strings.Join(argv, " "))
		}
		if err := push(undo.Command(what, argv...)); err != nil {
			return c.fail(Unavailable, "", "", "the change would not be undone, so it was not made: "+err.Error(), "")
		}
	}
	return nil
}

// resolve puts the names of phys in their places.
func (c *Config) resolve(h Host, argv []string) ([]string, error) {
	out := make([]string, len(argv))
	for i, w := range argv {
		iface, ok := strings.CutPrefix(w, phyOf)
		if !ok {
			out[i] = w
			continue
		}
		w, err := h.Wireless(iface)
		if err != nil {
			return nil, c.fail(Unavailable, "", "", fmt.Sprintf("no phy of %s: %v", iface, err), "name an interface of a cfg80211 driver")
		}
		out[i] = fmt.Sprintf("phy#%d", w.PhyIndex)
	}
	return out, nil
}

// refused makes an Error of a command that did not succeed.
func (c *Config) refused(s *change, err error) error {
	e := c.fail(Rejected, strings.Join(s.Settings, ", "), c.wanted(s.Settings), "", "")
	var f *Failed
	if !errors.As(err, &f) {
		e.Kind, e.Detail = Unavailable, err.Error()
		return e
	}
	e.Got = cmp.Or(f.Output, f.Status)
	e.Detail = "command: " + s.String()
	if e.Remedy = s.remedy; e.Remedy == "" {
		e.Remedy = remedyOf(f.Output)
	}
	return e
}

// remedyOf says what to do about the kernel's words in a tool's output.
func remedyOf(out string) string {
	low := strings.ToLower(out)
	for _, r := range []struct{ has, do string }{
		{"operation not permitted", "run the agent as root (sudo)"},
		{"(-1)", "run the agent as root (sudo)"},
		{"not supported", "leave the setting out of the experiment, or take a driver that has it"},
		{"(-95)", "leave the setting out of the experiment, or take a driver that has it"},
		{"invalid command", "take MadWifi 0.9.3 or newer: this one lacks the private ioctl"},
		{"resource busy", "end what else uses the radio (NetworkManager, wpa_supplicant, hostapd, another interface of the same phy)"},
		{"(-16)", "end what else uses the radio (NetworkManager, wpa_supplicant, hostapd, another interface of the same phy)"},
		{"invalid argument", "take a value in the driver's range, and a channel that the regulatory domain permits"},
		{"(-22)", "take a value in the driver's range, and a channel that the regulatory domain permits"},
		{"no such device", "look at the names of the node's interfaces"},
		{"(-19)", "look at the names of the node's interfaces"},
		{"rf-kill", "unblock the radio: rfkill unblock wifi"},
		{"(-132)", "unblock the radio: rfkill unblock wifi"},
	} {
		if strings.Contains(low, r.has) {
			return r.do
		}
	}
	return ""
}

// wanted lists the values of some settings.
func (c *Config) wanted(names []string) string {
	var out []string
	for _, v := range c.values() {
		for _, n := range names {
			if v.name == n {
				out = append(out, v.text)
			}
		}
	}
	return strings.Join(out, ", ")
}

// answer is what a driver says of one setting.
type answer struct {
	text  string // in the form of Config.values; shown as Got
	known bool   // false: it cannot be read
	why   string // why not, or how the driver shows it
	// same tells whether the text stands for the wanted value; nil: they are equal.
	same func(wanted string) bool
}

// verify compares what was wanted with the answers.
func (c *Config) verify(answers map[string]answer) ([]Setting, error) {
	var out []Setting
	var wrong *Error
	for _, v := range c.values() {
		a, ok := answers[v.name]
		if !ok {
			a.why = "the driver cannot be asked"
		}
		s := Setting{Name: v.name, Wanted: v.text, Got: a.text, State: Unverified, Why: a.why}
		if a.known {
			s.State = Verified
			if a.text != v.text && (a.same == nil || !a.same(v.text)) {
				if wrong == nil {
					wrong = c.fail(NotTaken, v.name, v.text, a.why, "")
					wrong.Got = a.text
				} else {
					wrong.Detail = strings.TrimPrefix(fmt.Sprintf("%s; also %s=%s is %s", wrong.Detail, v.name, v.text, a.text), "; ")
				}
			}
		}
		out = append(out, s)
	}
	if wrong != nil {
		return out, wrong
	}
	return out, nil
}
