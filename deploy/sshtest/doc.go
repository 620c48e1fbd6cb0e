// Package sshtest gives tests a real OpenSSH server to connect to, with keys and
// a known_hosts of its own, in this or another network namespace. Where OpenSSH is
// missing, or would refuse the user, the test is skipped with the typed reason. It
// is for tests only.
package sshtest
