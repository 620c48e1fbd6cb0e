package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// trees are the folders of the module that an agent is built from; it may import
// no others of it.
var trees = []string{"agent", "internal", "netem"}

// buildWithin bounds a build: the first one compiles the standard library, too.
const buildWithin = 5 * time.Minute

// noBuild says why nothing can be built here. Unlike a build that fails it lets
// others be tried.
type noBuild struct{ why string }

func (n *noBuild) Error() string { return "not built from source: " + n.why }

// buildAgent builds the agent of this program's source, or takes it from the cache
// (hopbed/agents in the user's cache folder), whose names have the hash of all that
// it was made from.
func buildAgent(ctx context.Context, arch string) (string, error) {
	root, err := sourceRoot()
	if err != nil {
		return "", err
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return "", &noBuild{"go is not in PATH"}
	}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOWORK=off")
	env = append(env, targets[arch].env...)
	version, err := run(ctx, root, env, goTool, "env", "GOVERSION", "GOFLAGS", "GOEXPERIMENT")
	if err != nil {
		return "", err
	}
	sum, err := sourceSum(root, version, arch)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &noBuild{fmt.Sprintf("no folder to keep agents in: %v", err)}
	}
	dir := filepath.Join(cache, "hopbed", "agents")
	path := filepath.Join(dir, FilePrefix+arch+"-"+sum)
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // so that it is not thought old
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep agents: %w", err)
	}
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("keep agents: %w", err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "agent")
	_, err = run(ctx, root, env, goTool, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./agent/cmd/hopbed-agent")
	if err != nil {
		return "", err
	}
	if err := os.Rename(out, path); err != nil { // another hopbed may have made the same file
		return "", fmt.Errorf("keep agents: %w", err)
	}
	forget(dir, arch, path)
	return path, nil
}

// kept is how many agents of a processor the cache keeps.
const kept = 3

// forget removes the oldest agents of a processor from the cache. What cannot be
// removed costs some space only.
func forget(dir, arch, newest string) {
	files, err := filepath.Glob(filepath.Join(dir, FilePrefix+arch+"-*"))
	if err != nil {
		return
	}
	age := map[string]time.Time{}
	files = slices.DeleteFunc(files, func(f string) bool {
		st, err := os.Stat(f)
		if err == nil {
			age[f] = st.ModTime()
		}
		return err != nil || f == newest
	})
	slices.SortFunc(files, func(a, b string) int { return age[b].Compare(age[a]) })
	for _, f := range files[min(len(files), kept-1):] {
		_ = os.Remove(f)
	}
}

func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, buildWithin, fmt.Errorf("go took longer than %v", buildWithin))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}

// sourceRoot is the folder of the source that this program was compiled from, or
// that it stands in. The working directory is not asked: what is built there would
// run as root on nodes.
func sourceRoot() (string, error) {
	var starts []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for {
			b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil {
				if strings.HasPrefix(string(b), "module "+Module+"\n") {
					return dir, nil
				}
				break // another module's
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", &noBuild{"hopbed's source is not where this program was compiled, nor around it"}
}

// sourceSum hashes what an agent is made from.
func sourceSum(root string, also ...string) (string, error) {
	h := sha256.New()
	add := func(path string) error {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), st.Size())
		_, err = io.Copy(h, f)
		return err
	}
	for _, f := range []string{"go.mod", "go.sum"} {
		if err := add(filepath.Join(root, f)); err != nil {
			return "", fmt.Errorf("hash the agent's source: %w", err)
		}
	}
	for _, tree := range trees {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			if err := add(path); !errors.Is(err, fs.ErrNotExist) { // an editor's file that went meanwhile
				return err
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("hash the agent's source: %w", err)
		}
	}
	for _, a := range also {
		fmt.Fprintf(h, "%d %s", len(a), a)
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}
