package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/check"
	"github.com/hopbed/hopbed/deploy/sshtest"
	"github.com/hopbed/hopbed/internal/testenv"
)

// deployLab writes an inventory of two nodes and one that is not there, and a folder
// with an agent: this test program.
func deployLab(t *testing.T) (inventory, agentsDir, there string) {
	t.Helper()
	testenv.Need(t, testenv.Root)
	t.Setenv("HOME", t.TempDir()) // no ssh_config of the user's
	dir := t.TempDir()
	there = filepath.Join(dir, "node")
	text := "inventory: 1\ndefaults: {user: root, jump: none}\nnodes:\n"
	for i, tag := range []string{"good", "good", "bad"} {
		s := sshtest.Start(t, sshtest.Options{Config: []string{"SetEnv HOME=" + t.TempDir()}})
		text += fmt.Sprintf("  - {name: n%02d, address: 127.0.0.1, port: %d, identity: %s, known-hosts: %s, dir: %s, tags: %s}\n",
			i+1, s.Addr.Port(), s.Identity, s.KnownHosts, filepath.Join(there, fmt.Sprint(i+1)), tag)
		if tag == "bad" {
			s.Stop()
		}
	}
	inventory = sshtest.Write(t, filepath.Join(dir, "lab.yaml"), text)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agentsDir = filepath.Join(dir, "agents")
	if err := os.Mkdir(agentsDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(agentsDir, agents.FilePrefix+runtime.GOARCH)); err != nil {
		t.Fatal(err)
	}
	return inventory, agentsDir, there
}

func deploy(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	errs, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	var out bytes.Buffer
	status = command(append([]string{"hopbed", "deploy"}, args...), &out, errs)
	return status, out.String(), sshtest.Read(t, errs.Name())
}

func TestDeploy(t *testing.T) {
	inv, dir, there := deployLab(t)
	common := []string{"--inventory", inv, "--agents", dir}
	run := func(name string, args ...string) (int, string, string) {
		return deploy(t, append(append([]string{name}, common...), args...)...)
	}

	status, out, _ := run("check")
	for _, want := range []string{"n01", "absent", "n03", "unreachable", "2 of 3 nodes can be used", "remedy"} {
		if !strings.Contains(out, want) {
			t.Errorf("check says nothing of %q:\n%s", want, out)
		}
	}
	if status != exitError {
		t.Errorf("a lab with a node that is not there: status %d", status)
	}
	if _, err := os.Stat(there); err == nil {
		t.Error("a check has changed the nodes")
	}

	status, out, errs := run("push", "--tags", "good")
	if status != exitOK || strings.Count(out, "uploaded: ") != 2 {
		t.Errorf("push: status %d\n%s%s", status, out, errs)
	}
	status, out, errs = run("push", "--nodes", "n02, n03")
	if status != exitError || !strings.Contains(out, "n02: unchanged") || !strings.Contains(out, "n03: failed: ") || !strings.Contains(errs, "1 of 2 nodes failed") {
		t.Errorf("push again: status %d\n%s%s", status, out, errs)
	}

	status, out, errs = run("check", "--tags", "good", "--json")
	var nodes []check.Node
	if err := json.Unmarshal([]byte(out), &nodes); err != nil || status != exitOK || len(nodes) != 2 {
		t.Fatalf("check --json: status %d, %v\n%s%s", status, err, out, errs)
	}
	for _, n := range nodes {
		if !n.Usable || n.Agent == nil || !n.Agent.Present || n.Clock == nil || n.Clock.By != "agent" || n.Arch != runtime.GOARCH {
			t.Errorf("%+v, clock %+v, agent %+v", n, n.Clock, n.Agent)
		}
	}

	status, out, errs = run("clean", "--nodes", "n01")
	if status != exitOK || !strings.HasPrefix(out, "n01: ") {
		t.Errorf("clean: status %d\n%s%s", status, out, errs)
	}
}

func TestDeployRefusesWhatItDoesNotKnow(t *testing.T) {
	inv, dir, _ := deployLab(t)
	for _, c := range [][]string{
		{"push", "--inventory", inv, "--agents", dir, "--nodes", "n09"},
		{"push", "--inventory", inv, "--agents", dir, "--nodes", "n01,n01"},
		{"check"},
		{"check", "--inventory", inv, "n01"},
		{"undeploy"},
	} {
		if status, out, errs := deploy(t, c...); status != exitUsage || errs == "" {
			t.Errorf("%q: status %d\n%s%s", c, status, out, errs)
		}
	}
	if status, _, errs := deploy(t, "check", "--inventory", inv+".missing"); status != exitError || !strings.Contains(errs, "missing") {
		t.Errorf("no inventory: status %d, %s", status, errs)
	}
}
