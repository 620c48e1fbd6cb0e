//go:build !linux

package testenv

import (
	"os/exec"
	"runtime"
)

func lookPath(name string) error { _, err := exec.LookPath(name); return err }

func linuxOnly() error { return lack("needs Linux, this is %s", runtime.GOOS) }

func probeRoot() error       { return linuxOnly() }
func probeNS() error         { return linuxOnly() }
func probeTAP() error        { return linuxOnly() }
func probeUserNS() error     { return linuxOnly() }
func probeFIFO() error       { return linuxOnly() }
func probeCC(_ string) error { return linuxOnly() }
func probePWait2() error     { return linuxOnly() }
