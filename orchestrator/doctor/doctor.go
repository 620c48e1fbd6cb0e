package doctor

// State is the outcome of a check.
type State string

// The outcomes.
const (
	OK   State = "ok"   // the host has it
	Lack State = "lack" // missing; Cost and Remedy say what follows
	Note State = "note" // a fact that a reader of results should know
)

// Check is one line of the doctor's report.
type Check struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Found  string `json:"found"`            // what was seen
	Cost   string `json:"cost,omitempty"`   // what does not work without it
	Remedy string `json:"remedy,omitempty"` // what to do
	// Needed says that the back end netns cannot run without it.
	Needed bool `json:"needed,omitempty"`
}

// Ready says whether the host can run emulated nodes: no needed check lacks.
func Ready(checks []Check) bool {
	for _, c := range checks {
		if c.Needed && c.State == Lack {
			return false
		}
	}
	return true
}
