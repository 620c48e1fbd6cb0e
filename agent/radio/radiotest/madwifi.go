package radiotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
)

// MadwifiEnv names the file with the state of the fake driver.
const MadwifiEnv = "HOPBED_FAKE_MADWIFI"

// madwifiTools are the programs that the fake is.
var madwifiTools = []string{"iwconfig", "iwpriv", "wlanconfig", "ip"}

// MadwifiMain ends the process as one of MadWifi's tools where it was started
// under the name of one. A test binary calls it first in TestMain.
func MadwifiMain() {
	name := filepath.Base(os.Args[0])
	file := os.Getenv(MadwifiEnv)
	if file == "" || !slices.Contains(madwifiTools, name) {
		return
	}
	d, err := loadMadwifi(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake madwifi:", err)
		os.Exit(99)
	}
	status := tool{d, os.Stdout, os.Stderr}.run(name, os.Args[1:])
	if err := d.save(file); err != nil {
		fmt.Fprintln(os.Stderr, "fake madwifi:", err)
		os.Exit(99)
	}
	os.Exit(status)
}

// Device is the state of the fake driver: one base device and its interfaces.
type Device struct {
	Base       string
	PhyMode    string // "auto", "11b" …
	ShPreamble int
	TxLimit    int // dBm that the regulatory domain permits
	TxPower    int // dBm; -1 = not fixed
	WMM        int
	Own, BSS   [4]WME // by the driver's numbers: BE, BK, VI, VO
	VAPs       []*VAP

	// SWRetry: the driver was patched to have retries.
	SWRetry bool
	// ShortTXOP: the driver keeps txops in eight bits.
	ShortTXOP bool
	// Lies are settings that are accepted and not made: "rate", "txoplimit" …
	Lies []string
	// Calls are the commands that were run.
	Calls [][]string
}

// WME is one category as the driver keeps it.
type WME struct{ AIFS, LogCWMin, LogCWMax, TXOP, NoAck int }

// VAP is an interface.
type VAP struct {
	Name, Mode string // Mode as wlanconfig takes it
	Up         bool
	Addresses  []netip.Prefix
	ESSID      string
	BSSID      string // desired; empty = none
	Channel    int    // desired; 0 = none
	Rate       int    // fixed, in 500 kb/s; 0 = auto
	McastRate  int    // kb/s
	Retry      int    // -1 = off
	RTS, Frag  int    // 2346 = off
}

// NewVAP returns an interface as the driver makes it.
func NewVAP(name, mode string) *VAP {
	return &VAP{Name: name, Mode: mode, McastRate: 1000, Retry: -1, RTS: 2346, Frag: 2346}
}

// NewDevice returns the driver as it is after it was loaded, with one interface
// in station mode. The parameters are those of a station in 802.11g
// (madwifi-0.9.4, net80211/ieee80211_proto.c, phyParamForAC).
func NewDevice() *Device {
	wme := [4]WME{{3, 4, 10, 0, 0}, {7, 4, 10, 0, 0}, {2, 3, 4, 94, 0}, {2, 2, 3, 47, 0}}
	return &Device{Base: "wifi0", PhyMode: "auto", TxLimit: 18, TxPower: -1, WMM: 1, Own: wme, BSS: wme, VAPs: []*VAP{NewVAP("ath0", "sta")}}
}

func (d *Device) vap(name string) *VAP {
	for _, v := range d.VAPs {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func loadMadwifi(file string) (*Device, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &Device{}
	return d, json.Unmarshal(b, d)
}

func (d *Device) save(file string) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// MadwifiHost is a host with the fake driver. Its commands are processes of the
// test binary, found by PATH.
type MadwifiHost struct {
	radio.Host
	// InProcess runs the tools without processes, where only what they do counts.
	InProcess bool

	t    testing.TB
	file string
	dir  string
}

// NewMadwifiHost installs the tools in PATH for the duration of the test.
func NewMadwifiHost(t testing.TB, d *Device) *MadwifiHost {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range madwifiTools {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	h := &MadwifiHost{Host: radio.System(), t: t, file: filepath.Join(dir, "state.json"), dir: dir}
	if err := d.save(h.file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(MadwifiEnv, h.file)
	return h
}

// Run implements radio.Host.
func (h *MadwifiHost) Run(ctx context.Context, argv []string, input string) (string, error) {
	if !h.InProcess || !slices.Contains(madwifiTools, argv[0]) {
		return h.Host.Run(ctx, argv, input)
	}
	d := h.Device()
	var out strings.Builder
	status := tool{d, &out, &out}.run(argv[0], argv[1:])
	if err := d.save(h.file); err != nil {
		return "", err
	}
	if status != 0 {
		return out.String(), &radio.Failed{Argv: argv, Status: fmt.Sprintf("exit status %d", status), Output: strings.Join(strings.Fields(out.String()), " ")}
	}
	return out.String(), nil
}

// Device returns the driver's state.
func (h *MadwifiHost) Device() *Device {
	h.t.Helper()
	d, err := loadMadwifi(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// Remove takes a tool away.
func (h *MadwifiHost) Remove(tool string) {
	if err := os.Remove(filepath.Join(h.dir, tool)); err != nil {
		h.t.Fatal(err)
	}
}

// Tools are the programs that the driver needs.
func (h *MadwifiHost) Tools() []string { return madwifiTools }

// Snapshot is everything that an undo must put back.
func (h *MadwifiHost) Snapshot() string {
	d := h.Device()
	d.Calls = nil
	b, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// ReadFile implements radio.Host: the driver's sysctl "%parent".
func (h *MadwifiHost) ReadFile(path string) ([]byte, error) {
	d := h.Device()
	for _, v := range d.VAPs {
		if path == "/proc/sys/net/"+v.Name+"/%parent" {
			return []byte(d.Base + "\n"), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// Interface implements radio.Host.
func (h *MadwifiHost) Interface(name string) (radio.Interface, error) {
	d := h.Device()
	if name == d.Base || name == "eth0" {
		return radio.Interface{Up: true}, nil
	}
	if v := d.vap(name); v != nil {
		return radio.Interface{Up: v.Up, Addresses: v.Addresses}, nil
	}
	return radio.Interface{}, fmt.Errorf("interface %s: %w", name, fs.ErrNotExist)
}

// Wireless implements radio.Host: kernels of MadWifi's time have no nl80211.
func (h *MadwifiHost) Wireless(string) (*radio.Wireless, error) {
	return nil, errors.New("no nl80211")
}

// lies tells whether a setting is to be accepted and not made.
func (d *Device) lies(setting string) bool { return slices.Contains(d.Lies, setting) }

// number reads a whole number as the tools do.
func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil
}
