package testenv

// Because is a requirement that a test has found lacking by itself, with why; nil
// means that the host has it.
func Because(name string, why error) Requirement {
	return Requirement{name: name, probe: func() error { return why }}
}
