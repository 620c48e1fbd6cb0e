package agents

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/about"
	"github.com/hopbed/hopbed/internal/testenv"
)

func TestArchitectures(t *testing.T) {
	for _, c := range []struct {
		machine string
		big     bool
		want    string
	}{
		{"x86_64", false, "amd64"}, {"i686", false, "386"}, {"aarch64", false, "arm64"},
		{"armv5tel", false, "arm"}, {"armv6l", false, "arm"}, {"armv7l", false, "arm"}, {"armv8l", false, "arm"},
		{"mips", false, "mipsle"}, {"mips", true, "mips"}, {"mipsel", false, "mipsle"}, {"riscv64", false, "riscv64"},
		{"mips64", false, ""}, {"armv7b", true, ""}, {"aarch64_be", true, ""}, {"sh4", false, ""}, {"", false, ""}, {"x86_64", true, ""},
	} {
		got, err := Arch(c.machine, c.big)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, big-endian %v: %q, %v; want %q", c.machine, c.big, got, err, c.want)
		}
		if err != nil && (kindOf(t, err) != KindArchitecture || !strings.Contains(err.Error(), "mipsle")) {
			t.Errorf("%s: %v does not say for which there are agents", c.machine, err)
		}
	}
	for m, a := range machines {
		for _, arch := range []string{a.little, a.big} {
			if _, ok := targets[arch]; arch != "" && !ok {
				t.Errorf("%s is %s, which nothing is known of", m, arch)
			}
		}
	}
	for _, a := range Shipped {
		if _, ok := targets[a]; !ok {
			t.Errorf("%s is shipped, and nothing is known of it", a)
		}
	}
}

// fake writes a program with nothing but an ELF header.
func fake(t *testing.T, dir, arch string) string {
	t.Helper()
	path := filepath.Join(dir, FilePrefix+arch)
	h := map[string]string{
		// e_ident (class, data), e_type 2, e_machine, then version and sizes.
		"arm64": "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xb7\x00" + "\x01\x00\x00\x00" + strings.Repeat("\x00", 28) + "\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00",
	}[arch]
	if err := os.WriteFile(path, []byte(h), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func never(context.Context, string) (string, error) { return "", &noBuild{"not here"} }

// The order in which agents are looked for.
func TestFinder(t *testing.T) {
	ctx := context.Background()
	t.Setenv(DirVariable, "")
	given, beside := t.TempDir(), t.TempDir()
	exe := filepath.Join(beside, "hopbed")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, exe); err != nil {
		t.Fatal(err)
	}

	// Nothing anywhere: the error says where, and what to do.
	f := &Finder{Exe: exe, Build: never}
	_, err = f.Agent(ctx, "arm64")
	if runtime.GOARCH != "arm64" && (kindOf(t, err) != KindNoAgent || !strings.Contains(err.Error(), beside) || !strings.Contains(err.Error(), "not here")) {
		t.Errorf("no agent: %v", err)
	}
	// This processor: the program itself.
	if runtime.GOOS == "linux" {
		if b, err := f.Agent(ctx, runtime.GOARCH); err != nil || b.Path != exe || b.From != "this program itself" {
			t.Errorf("for this processor: %+v, %v", b, err)
		}
	}
	// Built, where that is possible.
	built := fake(t, t.TempDir(), "arm64")
	f = &Finder{Exe: exe, Build: func(_ context.Context, arch string) (string, error) { return built, nil }}
	if b, err := f.Agent(ctx, "arm64"); err != nil || b.Path != built || b.From != "built from source" {
		t.Errorf("built: %+v, %v", b, err)
	}
	// A build that fails is not passed over.
	f = &Finder{Exe: exe, Build: func(context.Context, string) (string, error) { return "", errors.New("syntax error") }}
	if _, err := f.Agent(ctx, runtime.GOARCH); kindOf(t, err) != KindNoAgent || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("a build that failed: %v", err)
	}
	// In the bin folder beside the program, then beside it.
	if err := os.Mkdir(filepath.Join(beside, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	inBin := fake(t, filepath.Join(beside, "bin"), "arm64")
	f = &Finder{Exe: exe, Build: never}
	if b, err := f.Agent(ctx, "arm64"); err != nil || b.Path != inBin {
		t.Errorf("in bin: %+v, %v", b, err)
	}
	next := fake(t, beside, "arm64")
	f = &Finder{Exe: exe, Build: never}
	if b, err := f.Agent(ctx, "arm64"); err != nil || b.Path != next || b.Size != 64 || !b.Static {
		t.Errorf("beside: %+v, %v", b, err)
	}
	// A folder that is given counts alone.
	f = &Finder{Dir: given, Exe: exe, Build: never}
	if _, err := f.Agent(ctx, "arm64"); kindOf(t, err) != KindNoAgent || !strings.Contains(err.Error(), given) {
		t.Errorf("an empty folder: %v", err)
	}
	t.Setenv(DirVariable, given)
	path := fake(t, given, "arm64")
	f = &Finder{Exe: exe, Build: never}
	if b, err := f.Agent(ctx, "arm64"); err != nil || b.Path != path {
		t.Errorf("by the environment: %+v, %v", b, err)
	}
	if _, err := f.Agent(ctx, "z80"); kindOf(t, err) != KindArchitecture {
		t.Errorf("z80: %v", err)
	}
}

func TestProgramsOfAnotherKindAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(fake(t, dir, "arm64"), "mipsle"); kindOf(t, err) != KindArchitecture || !strings.Contains(err.Error(), "AARCH64") {
		t.Errorf("a program for arm64 as one for mipsle: %v", err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(text, "amd64"); kindOf(t, err) != KindArchitecture {
		t.Errorf("a text as a program: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "missing"), "amd64"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"v1.0.0", "v1.0.0", false}, {"v1.0.0", "v1.0.1", true}, {"", "v1.0.1", false}, {"v1.0.0", "", false}, {"v0.0.0-1-2+dirty", "v0.0.0-1-2", false}} {
		if differ(c.a, c.b) != c.want {
			t.Errorf("%q and %q: differ is %v", c.a, c.b, !c.want)
		}
	}
	if err := mismatch("n1", about.Identity{Version: "v9.9.9", Protocol: 1}, "x"); kindOf(t, err) != KindVersion || !strings.Contains(err.Error(), "v9.9.9") {
		t.Errorf("mismatch: %v", err)
	}
}

// What is built is cached by its source; therefore the agent must be made of
// nothing but the folders that are hashed.
func TestAgentIsMadeOfItsTrees(t *testing.T) {
	testenv.Need(t, testenv.Program("go"))
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./agent/cmd/hopbed-agent")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, p := range strings.Fields(string(out)) {
		rest, ok := strings.CutPrefix(p, Module+"/")
		if !ok {
			continue
		}
		own++
		tree, _, _ := strings.Cut(rest, "/")
		if !strings.Contains(strings.Join(trees, " "), tree) {
			t.Errorf("the agent imports %s, whose changes would not be noticed", p)
		}
	}
	if own < 5 {
		t.Errorf("go list knows %d packages of the agent", own)
	}
}

func TestSourceSum(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"go.mod", "go.sum", "agent/a.go", "internal/i.go", "netem/n.go", "reports/r.go"} {
		write(f, f)
	}
	sum := func(also ...string) string {
		s, err := sourceSum(root, also...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := sum("arm")
	for _, same := range []string{"agent/a_test.go", "agent/testdata/x.go", "reports/r.go"} {
		write(same, "changed")
		if sum("arm") != first {
			t.Errorf("%s changes the agent", same)
		}
	}
	seen := map[string]bool{first: true, sum("arm64"): true}
	for _, other := range []string{"agent/a.go", "netem/bpf.o", "go.sum"} {
		write(other, "changed")
		seen[sum("arm")] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d different sums, want 5", len(seen))
	}
}

func TestCacheForgetsTheOldest(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"arm-1", "arm-2", "arm-3", "arm-4", "arm64-1"} {
		path := filepath.Join(dir, FilePrefix+name)
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		st, _ := os.Stat(path)
		at := st.ModTime().Add(-100 + 10*1e9*100)
		if name == "arm-4" {
			at = at.Add(-1e15)
		}
		_ = i
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	forget(dir, "arm", filepath.Join(dir, FilePrefix+"arm-1"))
	got := names(t, dir)
	if strings.Contains(got, "arm-4") || !strings.Contains(got, "arm-1") || !strings.Contains(got, "arm64-1") || len(strings.Fields(got)) != 4 {
		t.Errorf("left: %s", got)
	}
}

// The agents of mesh routers are built and run: their version is that of this
// source, and the cache has them the second time.
func TestBuiltAgentsRun(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("go"))
	f := &Finder{Exe: filepath.Join(t.TempDir(), "hopbed")}
	t.Setenv(DirVariable, "")
	for _, arch := range Shipped {
		t.Run(arch, func(t *testing.T) {
			b, err := f.Agent(context.Background(), arch)
			if err != nil {
				t.Fatal(err)
			}
			if !b.Static || b.Size > 16<<20 {
				t.Errorf("static %v, %d bytes: an agent for a router has to be static and small", b.Static, b.Size)
			}
			path, err := buildAgent(context.Background(), arch)
			if err != nil || path != b.Path {
				t.Errorf("the second time it is %s, not %s (%v)", path, b.Path, err)
			}
			testenv.Need(t, testenv.Architecture(arch))
			for flag, want := range map[string]string{about.FlagVersion: about.Identity{Protocol: about.Own().Protocol}.String(), about.FlagSHA256: b.SHA256} {
				out, err := testenv.Foreign(arch, b.Path, flag).CombinedOutput()
				if err != nil || strings.TrimSpace(string(out)) != want {
					t.Errorf("%s: %q, %v; want %q", flag, out, err, want)
				}
			}
		})
	}
}
