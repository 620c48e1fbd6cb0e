package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
)

// parts are the roles in which hopbed starts itself again.
func parts() reexec.Table {
	return reexec.Table{
		session.Part:  func() int { return session.Main(version()) },
		emulator.Part: func() int { return emulator.Main(os.Stdin, os.Stdout) },
	}
}

// backends is the table of back ends.
var backends = []struct {
	name string
	open func(stderr *os.File) (backend.Backend, error)
}{
	{"netns", openNetns},
}

func backendNames() []string {
	var out []string
	for _, b := range backends {
		out = append(out, b.name)
	}
	return out
}

func newBackend(name string, stderr *os.File) (backend.Backend, error) {
	for _, b := range backends {
		if b.name == name {
			return b.open(stderr)
		}
	}
	return nil, usagef("--backend %s: there is no such back end, use one of: %s", name, strings.Join(backendNames(), ", "))
}

func openNetns(*os.File) (backend.Backend, error) {
	tag, err := newTag()
	if err != nil {
		return nil, err
	}
	journal := func(string, string) error { return nil }
	return live.New(live.Options{
		Name:       "netns",
		Controller: version(),
		Tag:        tag,
		Env:        []string{netns.TagVariable + "=" + tag},
		Journal:    journal,
		NewDriver: func() (node.Driver, error) {
			return netns.New(netns.Options{Part: session.Part, Tag: tag, Journal: journal})
		},
	}), nil
}

// newTag makes the ownership tag of one invocation: what carries it is
// hopbed's, and may be removed by hopbed clean.
func newTag() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("ownership tag: %w", err)
	}
	return "hb-" + hex.EncodeToString(b[:]), nil
}
