package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PIDs lists the processes of this PID namespace.
func PIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// stat returns the fields of /proc/PID/stat after the command name, which may
// itself contain spaces and parentheses; stat[0] is field 3, the state.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return nil, fmt.Errorf("/proc/%d/stat has no command name: %q", pid, b)
	}
	return strings.Fields(string(b[i+1:])), nil
}

// StartTime is when the process started, in clock ticks since boot (field 22 of
// proc_pid_stat(5)). Together with the PID it identifies a process until the
// next boot.
func StartTime(pid int) (uint64, error) {
	f, err := stat(pid)
	if err != nil {
		return 0, err
	}
	if len(f) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields, want 22 or more", pid, len(f)+2)
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// Running says whether the process exists and is not a zombie.
func Running(pid int) bool {
	f, err := stat(pid)
	return err == nil && len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// Name is the command name, "?" if the process has ended.
func Name(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

// NetNS is the identity of the process's network namespace, "net:[4026531840]".
func NetNS(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
}

// HasEnv says whether the process was executed with exactly this "KEY=value" in
// its environment. A process that may not be inspected is an error.
func HasEnv(pid int, entry string) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false, err
	}
	for e := range bytes.SplitSeq(b, []byte{0}) {
		if string(e) == entry {
			return true, nil
		}
	}
	return false, nil
}

// BootID identifies the current boot of this machine.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}
