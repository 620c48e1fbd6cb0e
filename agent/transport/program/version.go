package program

import (
	"fmt"
	"regexp"
	"strconv"
)

// version is what a program says of itself.
type version struct {
	major, minor int
	text         string
}

// "iperf 3.12 (cJSON 1.7.15)", "iperf version 2.1.8 (12 August 2022) pthreads"
var versionLine = regexp.MustCompile(`^iperf (?:version )?(\d+)\.(\d+)[^\r\n]*`)

// parseVersion reads the output of --version. Its first line is kept as text.
func parseVersion(out string) (version, error) {
	m := versionLine.FindStringSubmatch(out)
	if m == nil {
		return version{}, fmt.Errorf("it does not say its version: %.100q", out)
	}
	major, err := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err != nil || err2 != nil || major > 1000 || minor > 1000 {
		return version{}, fmt.Errorf("it does not say its version: %.100q", out)
	}
	return version{major, minor, oneLine([]byte(m[0]))}, nil
}

// least says whether the version is at least major.minor.
func (v version) least(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}
