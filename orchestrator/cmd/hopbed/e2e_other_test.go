//go:build !linux

package main

import "github.com/hopbed/hopbed/internal/reexec"

func testParts() reexec.Table { return nil }
