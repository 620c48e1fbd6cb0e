//go:build !linux

package main

import (
	"os"

	"github.com/urfave/cli/v2"
)

func setHelp() string { return "  (Linux only)" }

func upAction(*cli.Context, *os.File) error   { return unavailable("hopbed up") }
func execAction(*cli.Context, *os.File) error { return unavailable("hopbed exec") }
func setAction(*cli.Context) error            { return unavailable("hopbed set") }
func statusAction(*cli.Context) error         { return unavailable("hopbed status") }
func downAction(*cli.Context) error           { return unavailable("hopbed down") }
