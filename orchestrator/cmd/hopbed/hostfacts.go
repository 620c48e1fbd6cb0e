package main

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// hostFacts describes the machine for the record: what a reader needs to judge
// a measurement, nothing that names a person. A fact that cannot be read is
// left out.
func hostFacts() store.Facts {
	f := store.Facts{
		"os":   runtime.GOOS,
		"arch": runtime.GOARCH,
		"cpus": strconv.Itoa(runtime.NumCPU()),
		"go":   runtime.Version(),
	}
	add := func(key, file string) {
		if b, err := os.ReadFile(file); err == nil {
			f[key] = strings.TrimSpace(string(b))
		}
	}
	add("kernel", "/proc/sys/kernel/osrelease")
	add("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	add("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource")
	add("tcp_default_cc", "/proc/sys/net/ipv4/tcp_congestion_control")
	add("tcp_available_cc", "/proc/sys/net/ipv4/tcp_available_congestion_control")
	if v := fromFile("/proc/cpuinfo", "model name"); v != "" {
		f["cpu"] = v
	}
	if v := fromFile("/proc/meminfo", "MemTotal"); v != "" {
		f["memory"] = v
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil && strings.Contains(string(b), " hypervisor") {
		f["virtual_machine"] = "yes"
	}
	return f
}

// fromFile returns the value of the first "key : value" line.
func fromFile(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		k, v, ok := strings.Cut(s.Text(), ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
