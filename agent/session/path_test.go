//go:build linux

package session

import "testing"

func TestToolsAreInThePath(t *testing.T) {
	for in, want := range map[string]string{
		"/usr/bin:/bin":              "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
		"/sbin:/opt/x:/usr/sbin":     "/sbin:/opt/x:/usr/sbin:/usr/local/sbin",
		"":                           "/usr/local/sbin:/usr/sbin:/sbin",
		"/usr/local/sbin:/usr/sbin:": "/usr/local/sbin:/usr/sbin::/sbin",
	} {
		if got := withSbin(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
