//go:build linux

package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sbin is where the tools of drivers are; the PATH of a user who is not root, and
// of sudo and SSH servers, often leaves it out.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// withSbin appends what is missing.
func withSbin(path string) string {
	have := filepath.SplitList(path)
	for _, dir := range sbin {
		if !slices.Contains(have, dir) {
			have = append(have, dir)
		}
	}
	return strings.Join(have, string(filepath.ListSeparator))
}

// widenPath does so for this process and all that it starts.
func widenPath() error { return os.Setenv("PATH", withSbin(os.Getenv("PATH"))) }
