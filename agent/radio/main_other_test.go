//go:build !linux

package radio_test

import (
	"os"
	"testing"

	"github.com/hopbed/hopbed/agent/radio/radiotest"
)

func TestMain(m *testing.M) {
	radiotest.MadwifiMain()
	os.Exit(m.Run())
}
