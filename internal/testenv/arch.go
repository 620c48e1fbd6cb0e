package testenv

import (
	"os/exec"
	"runtime"
)

// qemuNames are the programs of qemu-user that run an architecture's binaries.
var qemuNames = map[string][]string{
	"arm64":   {"qemu-aarch64", "qemu-aarch64-static"},
	"arm":     {"qemu-arm", "qemu-arm-static"},
	"mipsle":  {"qemu-mipsel", "qemu-mipsel-static"},
	"riscv64": {"qemu-riscv64", "qemu-riscv64-static"},
}

// Architecture requires that this host can run Go programs of another
// architecture: by itself, or through qemu-user.
func Architecture(arch string) Requirement {
	return Requirement{name: "programs of " + arch, probe: func() error { _, err := emulator(arch); return err }}
}

// Foreign is the command that runs a program of another architecture, for tests
// that Need that Architecture.
func Foreign(arch, program string, args ...string) *exec.Cmd {
	if qemu, _ := emulator(arch); qemu != "" {
		return exec.Command(qemu, append([]string{program}, args...)...)
	}
	return exec.Command(program, args...)
}

// emulator returns the program that runs an architecture's binaries here; ""
// when the processor itself does.
func emulator(arch string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", lack("needs Linux, this is %s", runtime.GOOS)
	}
	if arch == runtime.GOARCH || arch == "386" && runtime.GOARCH == "amd64" {
		return "", nil
	}
	names := qemuNames[arch]
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	if len(names) == 0 {
		return "", lack("no emulator for %s is known", arch)
	}
	return "", lack("neither of %v is in PATH: install qemu-user-static", names)
}
