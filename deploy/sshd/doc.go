// Package sshd starts OpenSSH servers of its own: with their own host keys,
// configuration and log, on any address and in any network namespace, without
// touching the host's. It must not know who connects, or why.
package sshd
