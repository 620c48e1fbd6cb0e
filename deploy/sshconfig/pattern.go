package sshconfig

import "strings"

// Match reports whether a name fits a pattern with * (any number of any bytes) and
// ? (one byte). The case counts.
func Match(name, pattern string) bool {
	// The place to return to when a star took too little.
	star, mark := -1, 0
	n, p := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			n, p = n+1, p+1
		case star >= 0:
			mark++
			n, p = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// MatchAny reports whether a name fits one of the patterns and none of those that
// begin with "!".
func MatchAny(name string, patterns []string) bool {
	found := false
	for _, p := range patterns {
		if not, ok := strings.CutPrefix(p, "!"); ok {
			if Match(name, not) {
				return false
			}
		} else if Match(name, p) {
			found = true
		}
	}
	return found
}
