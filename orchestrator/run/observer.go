package run

import (
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Campaign is what an Observer learns at the start.
type Campaign struct {
	ID       int64
	Name     string
	Backend  string
	Quick    bool
	Runs     int           // runs to carry out now
	Finished int           // runs that an earlier invocation finished (--resume)
	Expected time.Duration // wall-clock estimate of the runs to carry out
	Database string
	// One command may carry campaigns out on several back ends: this is number
	// Part of Parts, and those after it are expected to take Later.
	Part, Parts int
	Later       time.Duration
}

// RunInfo names a run for people.
type RunInfo struct {
	Index      int // position in the plan, from 0
	Total      int
	Label      string // the matrix point, such as "transport=hop"
	Repetition int    // from 1
	Attempt    int    // from 1; above 1 when an invalid run is repeated
	Length     time.Duration
}

// Outcome is how a run ended.
type Outcome struct {
	RunID    int64
	Status   string // as stored: complete, invalid, failed, interrupted
	Reasons  []string
	Warnings []string
	Wall     time.Duration
	Flows    int     // measured, without those of requests
	Bulk     int     // of them, those that take what they get: the others' load is given
	MedianBP float64 // median goodput over the bulk flows, bit/s
	SumBP    float64 // aggregate goodput of all, bit/s
	Starved  int     // bulk flows below 10 kb/s
	// Messages of the others became ready in the measured interval, of which
	// Delivered arrived.
	Messages, Delivered int64
}

// Observer follows a campaign. Its methods are called from one goroutine.
type Observer interface {
	CampaignStarted(Campaign)
	RunStarted(RunInfo)
	// RunProgress says which phase a run is in and how far its measured time
	// has come (0 to length; both zero outside the traffic phase).
	RunProgress(phase string, at, length vtime.Duration)
	RunDone(RunInfo, Outcome)
	Warn(text string)
	CampaignDone(complete, invalid, failed int, wall time.Duration)
}

// Silent ignores everything (--quiet).
type Silent struct{}

// CampaignStarted implements Observer.
func (Silent) CampaignStarted(Campaign) {}

// RunStarted implements Observer.
func (Silent) RunStarted(RunInfo) {}

// RunProgress implements Observer.
func (Silent) RunProgress(string, vtime.Duration, vtime.Duration) {}

// RunDone implements Observer.
func (Silent) RunDone(RunInfo, Outcome) {}

// Warn implements Observer.
func (Silent) Warn(string) {}

// CampaignDone implements Observer.
func (Silent) CampaignDone(int, int, int, time.Duration) {}
