package wifi

type codeRate uint8

const (
	uncoded codeRate = iota
	half
	twoThirds
	threeQuarters
)

type errorTable struct{}

func buildTable(m *mode) *errorTable { return nil }
