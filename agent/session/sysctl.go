//go:build linux

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
)

// sysctlFile returns the file of a setting. Only the network's settings are an
// agent's business, and a key cannot lead out of them.
func sysctlFile(key string) (string, error) {
	path := key
	if !strings.Contains(path, "/") {
		path = strings.ReplaceAll(path, ".", "/")
	}
	if !strings.HasPrefix(path, "net/") || path != filepath.Clean(path) || strings.Contains(path, "..") {
		return "", &proto.Error{Code: proto.CodeOrder, What: "sysctl " + key, Detail: "want a name that begins with \"net.\""}
	}
	return "/proc/sys/" + path, nil
}

func readSysctl(key string) (string, error) {
	file, err := sysctlFile(key)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", sysctlError(key, err)
	}
	return normal(string(b)), nil
}

// normal makes values of several columns comparable.
func normal(s string) string { return strings.Join(strings.Fields(s), " ") }

func writeSysctl(key, value string) error {
	file, err := sysctlFile(key)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return sysctlError(key, err)
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		e := sysctlError(key, err)
		e.Wanted = value
		return e
	}
	return nil
}

func sysctlError(key string, err error) *proto.Error {
	e := &proto.Error{Code: proto.CodeSystem, What: "sysctl " + key, Detail: err.Error()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code = proto.CodeUnavailable
		e.Wanted = key
		e.Remedy = "leave the setting out or use a kernel that has it"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "run as root, or leave the setting to the administrator of the host"
	}
	return e
}

// applySysctls writes the settings whose names pass the filter, each with its
// undo. A setting that has the value already is not touched.
func (s *session) applySysctls(list []proto.Sysctl, wanted func(key string) bool) error {
	for _, c := range list {
		if !wanted(c.Key) {
			continue
		}
		old, err := readSysctl(c.Key)
		if err != nil {
			return err
		}
		if old == normal(c.Value) {
			continue
		}
		if err := s.undoSysctl(c.Key, old); err != nil {
			return err
		}
		if err := writeSysctl(c.Key, c.Value); err != nil {
			return err
		}
	}
	return nil
}

// keepSysctls remembers the values of settings that writing those of the list may
// change, in one record. Being undone last, they end as they were.
func (s *session) keepSysctls(list []proto.Sysctl, own func(key string) bool) error {
	interfaces, err := configured4()
	if err != nil {
		return err
	}
	var keys []string
	for _, c := range list {
		if own(c.Key) {
			keys = append(keys, slashes(c.Key))
		}
		keys = append(keys, sideEffects(slashes(c.Key), interfaces)...)
	}
	slices.Sort(keys)
	var old oldSysctls
	for _, key := range slices.Compact(keys) {
		v, err := readSysctl(key)
		if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeUnavailable {
			continue // the interface does not exist yet
		}
		if err != nil {
			return err
		}
		old = append(old, oldSysctl{key, v})
	}
	if len(old) == 0 {
		return nil
	}
	return s.push(kindSysctls, fmt.Sprintf("%d sysctls that others change", len(old)), old)
}

// confDir has the IPv4 settings of interfaces.
const confDir = "net/ipv4/conf/"

// configured4 are the names of the interfaces that have IPv4 settings.
func configured4() ([]string, error) {
	list, err := os.ReadDir("/proc/sys/" + confDir)
	if err != nil {
		return nil, sysctlError(confDir, err)
	}
	var names []string
	for _, e := range list {
		if e.Name() != "all" && e.Name() != "default" {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// sideEffects are the settings that the kernel changes when one is written
// (net/ipv4/devinet.c): a value for new interfaces goes to each that was never
// configured (devinet_copy_dflt_conf), forwarding goes to all, and with it whether
// redirects are accepted (inet_forward_change).
func sideEffects(key string, interfaces []string) []string {
	setting, isDefault := strings.CutPrefix(key, confDir+"default/")
	var out []string
	switch {
	case key == "net/ipv4/ip_forward" || key == confDir+"all/forwarding":
		setting = "forwarding"
		out = append(out, confDir+"default/forwarding", confDir+"all/accept_redirects")
	case !isDefault:
		return nil
	}
	for _, name := range interfaces {
		out = append(out, confDir+name+"/"+setting)
	}
	return out
}

func (s *session) undoSysctl(key, old string) error {
	return s.push(kindSysctl, "sysctl "+key, oldSysctl{key, old})
}

// ofInterfaces adds, for each setting net.ipv4.conf.default.X, the same setting
// of every interface: "default" only counts for interfaces made later, and the
// kernel uses the larger of "all" and the interface's own value for most of
// them (Documentation/networking/ip-sysctl).
func ofInterfaces(list []proto.Sysctl, names []string) []proto.Sysctl {
	const prefix = confDir + "default/"
	out := append([]proto.Sysctl(nil), list...)
	given := make(map[string]bool)
	for _, c := range list {
		given[slashes(c.Key)] = true
	}
	for _, c := range list {
		setting, ok := strings.CutPrefix(slashes(c.Key), prefix)
		if !ok {
			continue
		}
		for _, name := range names {
			if key := confDir + name + "/" + setting; !given[key] {
				out = append(out, proto.Sysctl{Key: key, Value: c.Value})
			}
		}
	}
	return out
}

func slashes(key string) string {
	if strings.Contains(key, "/") {
		return key
	}
	return strings.ReplaceAll(key, ".", "/")
}

// namesInterface tells whether the setting belongs to one of the interfaces and
// so exists only when that does.
func namesInterface(key string, names ...string) bool {
	key = slashes(key)
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(key, "/"+name+"/") })
}

// verifySysctls reads every setting back.
func verifySysctls(list []proto.Sysctl) ([]proto.Sysctl, error) {
	out := make([]proto.Sysctl, 0, len(list))
	for _, c := range list {
		got, err := readSysctl(c.Key)
		if err != nil {
			return nil, err
		}
		if got != normal(c.Value) {
			return nil, &proto.Error{Code: proto.CodeNotApplied, What: "sysctl " + c.Key, Wanted: c.Value, Got: got,
				Remedy: "another setting or program overrides it"}
		}
		out = append(out, proto.Sysctl{Key: c.Key, Value: got})
	}
	return out, nil
}
