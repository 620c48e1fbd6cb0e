package agents

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Shipped are the processors (GOARCH) that releases have agents for.
var Shipped = []string{"amd64", "arm64", "arm", "mipsle", "riscv64"}

// target is how the agent of a processor is built, and what its file looks like.
type target struct {
	env     []string // beside GOARCH
	machine elf.Machine
	order   binary.ByteOrder
	class   elf.Class
}

// targets has every processor that Go knows on Linux and that lab nodes have. Those
// beside Shipped are built where Go is.
//
// arm: GOARM=5 runs on every ARM since v5 (Kirkwood, IXP4xx routers), also those
// without floating-point unit; atomic operations then go through the kernel's
// helpers, which costs an agent nothing that could be measured. mips, mipsle: the
// processors of routers have no floating-point unit, and the kernel may lack its
// emulation.
var targets = map[string]target{
	"386":     {[]string{"GO386=softfloat"}, elf.EM_386, binary.LittleEndian, elf.ELFCLASS32},
	"amd64":   {[]string{"GOAMD64=v1"}, elf.EM_X86_64, binary.LittleEndian, elf.ELFCLASS64},
	"arm":     {[]string{"GOARM=5"}, elf.EM_ARM, binary.LittleEndian, elf.ELFCLASS32},
	"arm64":   {[]string{"GOARM64=v8.0"}, elf.EM_AARCH64, binary.LittleEndian, elf.ELFCLASS64},
	"mips":    {[]string{"GOMIPS=softfloat"}, elf.EM_MIPS, binary.BigEndian, elf.ELFCLASS32},
	"mipsle":  {[]string{"GOMIPS=softfloat"}, elf.EM_MIPS, binary.LittleEndian, elf.ELFCLASS32},
	"mips64":  {[]string{"GOMIPS64=softfloat"}, elf.EM_MIPS, binary.BigEndian, elf.ELFCLASS64},
	"ppc64le": {nil, elf.EM_PPC64, binary.LittleEndian, elf.ELFCLASS64},
	"riscv64": {[]string{"GORISCV64=rva20u64"}, elf.EM_RISCV, binary.LittleEndian, elf.ELFCLASS64},
	"s390x":   {nil, elf.EM_S390, binary.BigEndian, elf.ELFCLASS64},
}

// machines maps what `uname -m` prints to GOARCH; where the byte order decides it
// is for both.
var machines = map[string]struct{ little, big string }{
	"x86_64": {little: "amd64"}, "amd64": {little: "amd64"},
	"i386": {little: "386"}, "i486": {little: "386"}, "i586": {little: "386"}, "i686": {little: "386"},
	"aarch64": {little: "arm64"}, "arm64": {little: "arm64"}, "armv8b": {}, "aarch64_be": {},
	"armv5tel": {little: "arm"}, "armv5tejl": {little: "arm"}, "armv5l": {little: "arm"},
	"armv6l": {little: "arm"}, "armv6hl": {little: "arm"},
	"armv7l": {little: "arm"}, "armv7hl": {little: "arm"}, "armv8l": {little: "arm"},
	"mips": {little: "mipsle", big: "mips"}, "mipsel": {little: "mipsle"},
	"mips64":  {big: "mips64"},
	"ppc64le": {little: "ppc64le"},
	"riscv64": {little: "riscv64"},
	"s390x":   {big: "s390x"},
}

// Arch is the GOARCH of a node: machine is what `uname -m` prints, bigEndian is how
// its programs are stored (the kernels of mips routers say "mips" in both orders).
// The error is an *Error of KindArchitecture.
func Arch(machine string, bigEndian bool) (string, error) {
	m, known := machines[machine]
	arch := m.little
	if bigEndian {
		arch = m.big
	}
	if arch != "" {
		return arch, nil
	}
	order := "little-endian"
	if bigEndian {
		order = "big-endian"
	}
	e := &Error{Kind: KindArchitecture, What: fmt.Sprintf("no agent runs on a %s node of machine %q", order, machine),
		Do: "agents exist for " + strings.Join(Shipped, ", ") + ", and can be built from source for " + strings.Join(extra(), ", ")}
	if known {
		e.Because = "Go has no port for this byte order"
	}
	return "", e
}

// extra are the processors beside the shipped ones.
func extra() []string {
	var out []string
	for a := range targets {
		if !slices.Contains(Shipped, a) {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return out
}
