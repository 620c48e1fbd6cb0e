// Package sshclient reaches a node as OpenSSH would: ssh_config, known_hosts,
// keys, the agent, jump hosts; without ever passing a value through a shell that
// has not been quoted. It must not know what is run on the node.
package sshclient
