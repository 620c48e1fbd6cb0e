// Package sshconfig answers what OpenSSH's client configuration says about a
// host: the user's and the system's ssh_config, resolved as ssh itself does. What
// it does not support, and what would change where or how one connects, it says.
// It must not know nodes, and it connects to nothing.
package sshconfig
