package arch

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/hopbed/hopbed"

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	Deps       []string
	GoFiles    []string
	Standard   bool
}

// list returns the project's packages for one operating system, with their
// transitive dependencies. Test files are not part of the architecture: a test
// may join what the product keeps apart.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,Deps,GoFiles,Standard", module+"/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages only", len(pkgs))
	}
	return pkgs
}

// rules says what a package (or a tree ending in "/...") must not depend on,
// even through others, and why.
var rules = []struct {
	who    string
	not    string
	except string // a tree that is exempt on the "who" side
	why    string
}{
	{who: "netem/vtime", not: module, why: "vtime is the leaf: everything is written in its units"},
	{who: "netem/...", not: "agent/...", why: "the emulator knows frames, not protocols"},
	{who: "netem/...", not: "orchestrator/...", why: "netem can be used without hopbed"},
	{who: "netem/...", not: "experiments/...", why: "netem can be used without hopbed"},
	{who: "netem/...", not: "reports/...", why: "netem can be used without hopbed"},
	{who: "netem/wifi", not: "os", except: "", why: "the medium does no I/O: the same code runs in virtual time and live"},
	{who: "netem/pipe", not: "os", why: "a wired link does no I/O: the same code runs in virtual time and live"},
	{who: "netem/capture", not: "os", why: "a capture writes to what it is given: a file, or a buffer that another thread empties"},
	{who: "netem/capture", not: "time", why: "a capture's times are those of the engine"},
	{who: "agent/...", not: "orchestrator/...", why: "the agent is a small static program for mesh routers"},
	{who: "agent/...", not: "modernc.org/sqlite", why: "the agent has no database"},
	{who: "agent/...", not: "experiments/...", why: "the agent gets orders, not experiment files"},
	{who: "agent/...", not: "reports/...", why: "the agent draws nothing"},
	{who: "agent/...", not: "deploy/...", why: "the agent is what is deployed"},
	{who: "agent/...", not: "golang.org/x/crypto/ssh", why: "the agent speaks on its standard input; who brings the lines is not its business"},
	{who: "deploy/...", not: "orchestrator/...", why: "nodes can be reached and prepared without an experiment"},
	{who: "deploy/...", not: "experiments/...", why: "nodes can be reached and prepared without an experiment"},
	{who: "deploy/...", not: "reports/...", why: "nodes can be reached and prepared without an experiment"},
	{who: "agent/proto", not: "net/http", why: "the protocol is pure"},
	{who: "experiments/...", not: "orchestrator/...", why: "a file can be checked without a back end"},
	{who: "experiments/...", not: "agent/...", why: "a file can be checked without an agent"},
	{who: "reports/...", not: "agent/...", why: "reports read results through the store"},
	{who: "reports/...", not: "modernc.org/sqlite", except: "via orchestrator/store", why: "reports read results through the store"},
	{who: "reports/claims", not: "orchestrator/run", why: "what a paper claims is judged by stored results"},
	{who: "reports/claims", not: "orchestrator/backend", why: "what a paper claims is judged by stored results"},
	{who: "agent/undo", not: "agent/proto", why: "what is put back is data: it outlives the conversation"},
	{who: "agent/undo", not: "netem/...", why: "who makes a change says how it is taken back"},
	{who: "agent/radio", not: "agent/proto", why: "a driver knows an interface, not who asks"},
	{who: "orchestrator/lab", not: "orchestrator/backend/live", why: "a network by hand is given; the command joins the two"},
	{who: "orchestrator/lab", not: "orchestrator/store", why: "nothing of a network by hand is a result"},
	{who: "orchestrator/plan", not: "orchestrator/run", why: "a plan is pure: it is printed without touching anything"},
}

// direct says who alone may import a package directly.
var direct = []struct {
	target string
	only   []string
	why    string
}{
	{"github.com/jmoiron/sqlx", []string{"orchestrator/store"}, "one package speaks SQL"},
	{"modernc.org/sqlite", []string{"orchestrator/store"}, "one package speaks SQL"},
	{"database/sql", []string{"orchestrator/store"}, "one package speaks SQL"},
	{"github.com/urfave/cli/v2", []string{"orchestrator/cmd/hopbed"}, "the command line is a thin layer"},
	{module + "/internal/tshark", nil, "it is for tests"},
	{"golang.org/x/crypto/ssh", []string{"deploy/sshclient", "deploy/sshd"}, "one package speaks SSH; the other makes keys for servers"},
	{"github.com/parquet-go/parquet-go", []string{"orchestrator/export"}, "one package writes other programs' formats"},
	{"golang.org/x/image", []string{"reports/figure"}, "figures are painted in one place"},
	{module + "/deploy/sshtest", nil, "it is for tests"},
	{module + "/agent/radio/radiotest", nil, "it is for tests"},
	{module + "/orchestrator/node/ssh", []string{"orchestrator/cmd/hopbed", "orchestrator/node/sshns"}, "one place knows every driver"},
	{module + "/orchestrator/node/sshns", []string{"orchestrator/cmd/hopbed"}, "one place knows every driver"},
	{module + "/orchestrator/node/netns", []string{"orchestrator/cmd/hopbed", "orchestrator/bench", "orchestrator/node/sshns"}, "one place knows every driver; the benchmark measures this one, and namespaces with an sshd are namespaces"},
	{module + "/orchestrator/backend/live", []string{"orchestrator/cmd/hopbed"}, "one place knows every back end"},
	{module + "/orchestrator/backend/sim", []string{"orchestrator/cmd/hopbed"}, "one place knows every back end"},
}

func under(path, tree string) bool {
	path = strings.TrimPrefix(path, module+"/")
	if base, ok := strings.CutSuffix(tree, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == tree
}

func TestImportRules(t *testing.T) {
	pkgs := list(t)
	for _, r := range rules {
		seen := 0
		defer func() {
			if seen == 0 {
				t.Errorf("the rule about %s speaks of no package", r.who)
			}
		}()
		for _, p := range pkgs {
			if !under(p.ImportPath, r.who) {
				continue
			}
			seen++
			deps := p.Deps
			if strings.HasPrefix(r.except, "via ") || r.not == "os" || r.not == "time" || r.not == "net/http" {
				deps = p.Imports // the rule is about direct use
			}
			for _, d := range deps {
				bad := under(d, r.not)
				if r.not == module {
					bad = strings.HasPrefix(d, module+"/")
				}
				if bad {
					t.Errorf("%s depends on %s: %s", p.ImportPath, d, r.why)
				}
			}
		}
	}
	for _, r := range direct {
		for _, p := range pkgs {
			for _, d := range p.Imports {
				if d != r.target {
					continue
				}
				ok := false
				for _, o := range r.only {
					ok = ok || under(p.ImportPath, o+"/...")
				}
				if !ok {
					t.Errorf("%s imports %s: %s", p.ImportPath, d, r.why)
				}
			}
		}
	}
}

// pure are the packages whose result is a function of their arguments: they
// may import each other and a fixed part of the standard library, nothing
// else.
var pure = []struct {
	who   string
	allow []string
}{
	{"netem/des", []string{"netem/vtime", "netem/des/fmath"}},
	{"netem/des/fmath", nil},
	// sync: tables of the error model are computed once for all runs of a process.
	{"netem/wifi", []string{"netem/vtime", "netem/des", "netem/des/fmath", "sync"}},
	// encoding/json: a live emulator is told of pipes and their traces.
	{"netem/pipe", []string{"netem/vtime", "netem/des", "netem/des/fmath", "encoding/json"}},
	{"netem/inet", nil},
	{"agent/transport/hop", []string{"netem/vtime"}},
	{"agent/transport/tcp", []string{"netem/vtime"}},
	// cbor: bundles are CBOR.
	{"agent/transport/bundle", []string{"netem/vtime", "github.com/fxamacker/cbor/v2"}},
	{"agent/transport/bundle/cut", []string{"netem/vtime", "agent/proto", "agent/transport", "agent/transport/bundle", "agent/workload"}},
	// des: the random streams, from which both ends draw the same schedule.
	{"agent/workload", []string{"netem/vtime", "netem/des", "netem/des/fmath"}},
	// netip: addresses are values.
	{"agent/coop", []string{"netem/vtime", "netem/des", "netem/des/fmath", "net/netip"}},
	// A trace is a function of its parameters.
	{"netem/celltrace", []string{"netem/vtime", "netem/des", "netem/des/fmath"}},
	{"netem/winrewrite", []string{"netem/vtime", "netem/inet"}},
	// agent/probe: the clock of the part that is driven by sockets.
	{"agent/linkprobe", []string{"netem/vtime", "netem/des", "agent/proto"}},
	{"agent/workload/voice", []string{"netem/vtime", "netem/des/fmath"}},
	{"orchestrator/backend/sim/simhop", []string{"netem/vtime", "netem/des", "netem/wifi", "agent/transport/hop"}},
	{"orchestrator/backend/sim/simnet", []string{"netem/vtime", "netem/des", "netem/wifi", "netem/pipe", "netem/inet", "agent/proto", "agent/transport", "agent/transport/hop",
		"agent/transport/tcp", "agent/transport/relay", "agent/transport/bundle", "agent/transport/bundle/cut", "agent/workload", "orchestrator/backend/sim/simhop",
		"agent/coop", "netem/winrewrite", "net/netip"}},
}

// pureStd is what deterministic code needs of the standard library.
var pureStd = map[string]bool{
	"bytes": true, "cmp": true, "encoding/binary": true, "encoding/hex": true, "errors": true, "fmt": true,
	"hash": true, "hash/crc32": true, "hash/crc64": true, "hash/fnv": true, "crypto/sha256": true, "io": true,
	"math": true, "math/bits": true, "slices": true, "sort": true, "strconv": true, "strings": true,
	"bufio": true, "iter": true, "container/heap": true, "unicode/utf8": true,
}

func TestDeterministicPackagesImportNothingElse(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t) {
		for _, r := range pure {
			if !under(p.ImportPath, r.who) {
				continue
			}
			seen[r.who] = true
			for _, d := range p.Imports {
				ok := pureStd[d]
				for _, a := range r.allow {
					ok = ok || under(d, a)
				}
				if !ok {
					t.Errorf("%s imports %s: deterministic packages have no clock, goroutine, I/O or global state", p.ImportPath, d)
				}
			}
		}
	}
	for _, r := range pure {
		if !seen[r.who] {
			t.Errorf("the rule about %s speaks of no package", r.who)
		}
	}
}
