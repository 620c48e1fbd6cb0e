package lane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// KernelVar is the environment variable that names the package of the kernel, or
// the folder of an unpacked one (with boot/vmlinuz-* and lib/modules/*).
const KernelVar = "HOPBED_LANE_KERNEL"

// CacheVar is the environment variable that names the folder where fetched
// kernels are kept; default: hopbed/lane in the user's cache.
const CacheVar = "HOPBED_LANE_CACHE"

// packages are the kernels that are looked for in the archive, best first: one
// from 6.6 on has all of netem's settings.
var packages = []string{"linux-image-6.12-amd64", "linux-image-amd64", "linux-image-generic"}

// Kernel is an unpacked kernel with its modules.
type Kernel struct {
	Version string
	image   string // vmlinuz
	modules string // lib/modules/VERSION
	unxz    string // where decompressed modules are kept
	index   map[string]string
}

const what = "a kernel lane"

// Fetch returns the kernel of the lane, from the cache or from the host's package
// archive (about 110 MB, once). Its error is an *Unavailable where the host has no
// apt, the archive no kernel, or the network is away.
func Fetch(ctx context.Context) (*Kernel, error) {
	name := os.Getenv(KernelVar)
	if strings.HasPrefix(name, "/") {
		return open(name)
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	candidates := packages
	if name != "" {
		candidates = []string{name}
	}
	for _, c := range candidates {
		if k, err := open(filepath.Join(cache, c)); err == nil {
			return k, nil
		}
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	var found *Unavailable
	for _, c := range candidates {
		dir := filepath.Join(cache, c)
		if k, err := open(dir); err == nil { // fetched by another process meanwhile
			return k, nil
		}
		err := download(ctx, cache, c)
		if err == nil {
			return open(dir)
		}
		if !errors.As(err, &found) {
			return nil, err
		}
	}
	return nil, found
}

func cacheDir() (string, error) {
	dir := os.Getenv(CacheVar)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("kernel lane: no folder for the kernel: %w; set %s", err, CacheVar)
		}
		dir = filepath.Join(base, "hopbed", "lane")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("kernel lane: folder for the kernel: %w; set %s to another", err, CacheVar)
	}
	return dir, nil
}

// lock takes an exclusive lock on a file: two test binaries may want the kernel
// at once.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// kernelPackage is the name of a package with a kernel or its modules of one
// version; the archive's metapackages depend on them.
var kernelPackage = regexp.MustCompile(`^linux-(image|modules|modules-extra|binary)(-unsigned)?-[0-9]`)

// download fetches the packages behind a metapackage and unpacks them to
// cache/name, which appears whole or not at all.
func download(ctx context.Context, cache, name string) error {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &Unavailable{what, "this host has no " + tool,
				"unpack a kernel by hand and set " + KernelVar + " to its folder (boot/vmlinuz-*, lib/modules/*)", err}
		}
	}
	missing := func(why string, err error) error {
		return &Unavailable{what, why, "run apt-get update, or set " + KernelVar + " to a package or an unpacked kernel", err}
	}
	out, err := output(ctx, cache, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", name)
	if err != nil {
		return missing("the package "+name+" is not in the archive", err)
	}
	var debs []string
	for line := range strings.Lines(string(out)) {
		if p := strings.TrimSpace(line); !strings.HasPrefix(line, " ") && kernelPackage.MatchString(p) && p != name {
			debs = append(debs, p)
		}
	}
	if len(debs) == 0 {
		debs = []string{name} // a package of one version itself
	}
	tmp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if _, err := output(ctx, tmp, "apt-get", append([]string{"download", "-q"}, debs...)...); err != nil {
		return missing(fmt.Sprintf("%s could not be downloaded", strings.Join(debs, ", ")), err)
	}
	files, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil {
		return err
	}
	tree := filepath.Join(tmp, "tree")
	for _, f := range files {
		if _, err := output(ctx, tmp, "dpkg-deb", "-x", f, tree); err != nil {
			return err
		}
	}
	if _, err := open(tree); err != nil {
		return missing(fmt.Sprintf("%s hold no kernel", strings.Join(debs, ", ")), err)
	}
	dst := filepath.Join(cache, name)
	if err := os.RemoveAll(dst); err != nil {
		return err
	}
	return os.Rename(tree, dst)
}

// output runs a program and returns what it wrote; its error holds the program's
// last words.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, lastLines(stderr.String(), 3))
	}
	return stdout.Bytes(), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// open looks for a kernel in a folder as its packages unpack.
func open(dir string) (*Kernel, error) {
	one := func(patterns ...string) (string, error) {
		for _, p := range patterns {
			if m, _ := filepath.Glob(filepath.Join(dir, p)); len(m) > 0 {
				return m[len(m)-1], nil
			}
		}
		return "", &Unavailable{what, fmt.Sprintf("%s has no %s", dir, patterns[0]), "set " + KernelVar + " to the folder of an unpacked kernel", nil}
	}
	image, err := one("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
	if err != nil {
		return nil, err
	}
	modules, err := one("lib/modules/*/kernel", "usr/lib/modules/*/kernel")
	if err != nil {
		return nil, err
	}
	modules = filepath.Dir(modules)
	k := &Kernel{Version: filepath.Base(modules), image: image, modules: modules}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	k.unxz = filepath.Join(cache, "modules", k.Version)
	return k, nil
}
