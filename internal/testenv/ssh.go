package testenv

// SSHServer requires that this host can run an OpenSSH server and that the current
// user may log in to it; available is deploy/sshd's answer.
func SSHServer(available func() error) Requirement {
	return Requirement{name: "OpenSSH server", probe: available}
}
