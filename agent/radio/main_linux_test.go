package radio_test

import (
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/radio/radiotest"
)

func TestMain(m *testing.M) {
	radiotest.MadwifiMain()
	agenttest.Main(m)
}
