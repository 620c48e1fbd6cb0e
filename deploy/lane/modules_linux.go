package lane

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Network is what a test of emulated links needs: virtual devices, and the
// kernel's queueing disciplines, filters and actions.
var Network = []string{
	"veth", "tun", "dummy", "ifb numifbs=0", "bridge",
	"sch_netem", "sch_tbf", "sch_htb", "sch_prio", "sch_fq", "sch_fq_codel", "sch_ingress",
	"cls_u32", "cls_flower", "cls_matchall", "cls_bpf", "act_mirred", "act_gact",
	"tcp_westwood", "tcp_bic", "tcp_bbr",
}

// hostModules are for the host's file system in the guest.
var hostModules = []string{"9pnet_virtio", "9p", "overlay"}

// module is a module's file on the host and how it is called in the guest.
type module struct {
	name, file, params string
}

// resolve returns the modules with all that they depend on, in an order in which
// they can be loaded. A name may be followed by parameters: "mac80211_hwsim
// radios=4". What is built into the kernel needs no file.
func (k *Kernel) resolve(ctx context.Context, names []string) ([]module, error) {
	if err := k.readIndex(); err != nil {
		return nil, err
	}
	var list []module
	seen := map[string]bool{}
	var add func(name, params string) error
	add = func(name, params string) error {
		name = canonical(name)
		if seen[name] {
			return nil
		}
		seen[name] = true
		rel, ok := k.index[name]
		if !ok {
			return &Unavailable{what, fmt.Sprintf("kernel %s has no module %s", k.Version, name),
				"set " + KernelVar + " to a package that has it (not a cloud image)", nil}
		}
		if rel == "" {
			if params != "" {
				return fmt.Errorf("kernel lane: %s is built into kernel %s and takes no parameters (%s)", name, k.Version, params)
			}
			return nil
		}
		file, err := k.plain(ctx, rel)
		if err != nil {
			return err
		}
		hard, soft, err := dependencies(file)
		if err != nil {
			return err
		}
		for _, d := range soft {
			// A soft dependency is one that the kernel can do without.
			if _, ok := k.index[canonical(d)]; ok {
				hard = append(hard, d)
			}
		}
		for _, d := range hard {
			if err := add(d, ""); err != nil {
				return err
			}
		}
		list = append(list, module{name, file, params})
		return nil
	}
	// Parameters count where the module is named, even if another one needs it
	// earlier.
	params := map[string]string{}
	for _, n := range names {
		name, p, _ := strings.Cut(n, " ")
		params[canonical(name)] = p
	}
	for _, n := range names {
		name, _, _ := strings.Cut(n, " ")
		if err := add(name, params[canonical(name)]); err != nil {
			return nil, err
		}
	}
	for i := range list {
		if p := params[list[i].name]; p != "" {
			list[i].params = p
		}
	}
	return list, nil
}

// canonical is a module's name as the kernel says it.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

// readIndex finds every module's file; one that is built in has none.
func (k *Kernel) readIndex() error {
	if k.index != nil {
		return nil
	}
	index := map[string]string{}
	err := filepath.WalkDir(filepath.Join(k.modules, "kernel"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if base, _, ok := strings.Cut(e.Name(), ".ko"); ok {
			index[canonical(base)] = path
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("kernel lane: modules of %s: %w", k.Version, err)
	}
	builtin, err := os.ReadFile(filepath.Join(k.modules, "modules.builtin"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(builtin)) {
		base, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(line)), ".ko")
		index[canonical(base)] = ""
	}
	k.index = index
	return nil
}

// plain returns a module's file without compression; decompressed ones are kept.
func (k *Kernel) plain(ctx context.Context, file string) (string, error) {
	tool := map[string]string{".ko": "", ".xz": "xz", ".zst": "zstd", ".gz": "gzip"}
	ext := filepath.Ext(file)
	name, ok := tool[ext]
	switch {
	case !ok:
		return "", fmt.Errorf("kernel lane: module %s has an unknown compression", file)
	case name == "":
		return file, nil
	}
	dst := filepath.Join(k.unxz, strings.TrimSuffix(filepath.Base(file), ext))
	if _, err := os.Stat(dst); err == nil {
		return dst, nil
	}
	if _, err := exec.LookPath(name); err != nil {
		return "", &Unavailable{what, "the kernel's modules are compressed and this host has no " + name, "install " + name + " (Debian: xz-utils, zstd, gzip)", err}
	}
	data, err := output(ctx, "/", name, "-dc", file)
	if err != nil {
		return "", err
	}
	return dst, writeWhole(dst, data)
}

// writeWhole writes a file that appears complete or not at all.
func writeWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// dependencies reads what a module says of itself (section .modinfo): the modules
// that it needs, and those that it would have before it.
func dependencies(file string) (hard, soft []string, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("kernel lane: module %s: %w", file, err)
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, nil, fmt.Errorf("kernel lane: %s is no kernel module: it has no section .modinfo", file)
	}
	info, err := s.Data()
	if err != nil {
		return nil, nil, fmt.Errorf("kernel lane: module %s: %w", file, err)
	}
	for entry := range bytes.SplitSeq(info, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "=")
		switch key {
		case "depends":
			hard = append(hard, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })...)
		case "softdep":
			if pre, ok := strings.CutPrefix(value, "pre:"); ok {
				pre, _, _ = strings.Cut(pre, "post:")
				soft = append(soft, strings.Fields(pre)...)
			}
		}
	}
	slices.Sort(hard)
	return hard, soft, nil
}
