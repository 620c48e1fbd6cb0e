package dataset

import (
	"fmt"

	"github.com/hopbed/hopbed/orchestrator/store"
)

func (s *Set) warn() {
	if s.Campaign.Quick {
		s.Warnings = append(s.Warnings, QuickNotice)
	}
	unmeasured := 0
	for g := range s.Groups {
		for _, ser := range s.Groups[g].Series {
			for _, rep := range ser.Reps {
				unmeasured += rep.Unmeasured
			}
		}
	}
	if unmeasured > 0 {
		s.Warnings = append(s.Warnings, unmeasuredNotice(unmeasured))
	}
	backends := map[string]bool{}
	for _, g := range s.Groups {
		backends[g.Backend] = true
	}
	if len(backends) > 1 {
		s.Warnings = append(s.Warnings, "the campaign holds runs of several back ends: they are shown apart and never pooled")
	}
}

func unmeasuredNotice(n int) string {
	if n == 1 {
		return "1 flow of a valid run could not be measured and is missing from every statistic"
	}
	return fmt.Sprintf("%d flows of valid runs could not be measured and are missing from every statistic", n)
}

// Ending says how the campaign ended when it is not complete, "" when it is.
func (s *Set) Ending() string {
	c := &s.Campaign
	switch {
	case c.Status == store.CampaignComplete:
		return ""
	case c.Status == store.CampaignRunning:
		return "The campaign is not finished: these are the runs so far"
	case c.Status == store.CampaignKilled:
		return "The campaign was killed before its end: these are the runs until then; --resume goes on"
	case c.Note != "":
		return fmt.Sprintf("The campaign is %s: %s", c.Status, c.Note)
	}
	return fmt.Sprintf("The campaign is %s", c.Status)
}

// Counts tells runs of the plan, each of which may need several attempts, from
// those attempts.
type Counts struct {
	Planned, Valid int // runs of the plan; those with a valid attempt
	// Attempts are all that were made; the others say how those that are not
	// valid ended.
	Attempts, Invalid, Failed, Interrupted int
}

// Counts counts the campaign's runs.
func (s *Set) Counts() Counts {
	c := Counts{Planned: int(s.Campaign.Planned), Attempts: len(s.Runs)}
	for i := range s.Runs {
		switch s.Runs[i].Status {
		case store.RunComplete:
			c.Valid++ // a run with a valid attempt is not made again
		case store.RunInvalid:
			c.Invalid++
		case store.RunFailed:
			c.Failed++
		default:
			c.Interrupted++
		}
	}
	return c
}

// LeftOut lists how many attempts are not valid, by how they ended.
func (c *Counts) LeftOut() []string {
	var out []string
	for _, b := range []struct {
		n    int
		what string
	}{{c.Invalid, "invalid"}, {c.Failed, "failed"}, {c.Interrupted, "interrupted"}} {
		if b.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", b.n, b.what))
		}
	}
	return out
}
