package arch

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checked is a package with its syntax and types; test files are left out.
type checked struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// checkTypes loads the deterministic packages. The types of what they import
// come from the compiler's export data.
func checkTypes(t *testing.T, trees ...string) []checked {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Standard"}
	for _, d := range trees {
		args = append(args, module+"/"+d)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	all := map[string]listed{}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	var pkgs []checked
	for _, d := range trees {
		p, ok := all[module+"/"+d]
		if !ok {
			t.Fatalf("go list knows no %s", d)
		}
		c := checked{path: d, fset: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, f), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, file)
		}
		imp := importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
			if e := all[path].Export; e != "" {
				return os.Open(e)
			}
			return nil, fmt.Errorf("no export data for %s", path)
		})
		conf := types.Config{Importer: imp}
		if _, err := conf.Check(p.ImportPath, c.fset, c.files, c.info); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		pkgs = append(pkgs, c)
	}
	return pkgs
}

// deterministic are the packages whose trace must be equal to the bit.
var deterministic = []string{
	"netem/des", "netem/des/fmath", "netem/wifi", "netem/pipe", "netem/inet",
	"agent/transport/hop", "agent/transport/tcp", "agent/transport/bundle", "agent/transport/bundle/cut", "agent/workload", "agent/workload/voice",
	"orchestrator/backend/sim/simhop", "orchestrator/backend/sim/simnet", "orchestrator/backend/sim",
}

// laidOut are the packages from which a run's network, orders and captures come:
// equal files and seeds must give equal ones.
var laidOut = []string{"experiments/topology", "experiments/etx", "orchestrator/plan", "orchestrator/backend", "netem/capture"}

// TestNoOrderOfMaps: the order in which a map is walked through differs from run
// to run.
func TestNoOrderOfMaps(t *testing.T) {
	for _, p := range checkTypes(t, append(laidOut, deterministic...)...) {
		p.each(func(n ast.Node, _ []ast.Node) {
			r, ok := n.(*ast.RangeStmt)
			if !ok {
				return
			}
			if _, ok := p.info.TypeOf(r.X).Underlying().(*types.Map); ok {
				t.Errorf("%s: a loop over a map: its order is random", p.fset.Position(n.Pos()))
			}
		})
	}
}

// TestNoClockNorGlobalRandomness: what the import rules cannot see, because the
// packages may be imported for their types.
func TestNoClockNorGlobalRandomness(t *testing.T) {
	forbidden := map[string]string{
		"time.Now": "the clock", "time.Since": "the clock", "time.Until": "the clock", "time.Sleep": "the clock", "time.After": "the clock",
		"time.AfterFunc": "the clock", "time.NewTimer": "the clock", "time.NewTicker": "the clock", "time.Tick": "the clock",
	}
	for _, p := range checkTypes(t, append(laidOut, deterministic...)...) {
		p.each(func(n ast.Node, _ []ast.Node) {
			id, ok := n.(*ast.Ident)
			if !ok {
				return
			}
			f, ok := p.info.Uses[id].(*types.Func)
			if !ok || f.Pkg() == nil {
				return
			}
			name := f.Pkg().Path() + "." + f.Name()
			if why := forbidden[name]; why != "" {
				t.Errorf("%s: %s reads %s", p.fset.Position(n.Pos()), name, why)
			}
			if strings.HasPrefix(name, "math/rand") && f.Signature().Recv() == nil && !strings.HasPrefix(f.Name(), "New") {
				t.Errorf("%s: %s draws from the process's random source", p.fset.Position(n.Pos()), name)
			}
		})
	}
}

// TestNoFusedMultiplyAdd: arm64 and others may compute x*y+z with one rounding
// instead of two, also across statements; a conversion of the product rounds it
// (Go specification, floating-point operators). So every product is converted,
// or part of a product or quotient that is, or is compared.
func TestNoFusedMultiplyAdd(t *testing.T) {
	laid := []string{"experiments/topology", "experiments/etx"}
	for _, p := range checkTypes(t, append(laid, deterministic...)...) {
		p.each(func(n ast.Node, around []ast.Node) {
			var product ast.Expr
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.MUL && p.info.Types[n].Value == nil && isFloat(p.info.TypeOf(n)) && !p.rounded(around) {
					product = n
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN && isFloat(p.info.TypeOf(n.Lhs[0])) {
					product = n.Lhs[0]
				}
			}
			if product != nil {
				t.Errorf("%s: the product %s may be fused with an addition: write float64(x*y)", p.fset.Position(n.Pos()), types.ExprString(product))
			}
		})
	}
}

// each visits every node with those around it, the innermost last.
func (p *checked) each(visit func(n ast.Node, around []ast.Node)) {
	for _, f := range p.files {
		var stack []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			visit(n, stack)
			stack = append(stack, n)
			return true
		})
	}
}

// rounded reports whether what stands around a product leaves no addition to
// fuse it with.
func (p *checked) rounded(around []ast.Node) bool {
	for i := len(around) - 1; i >= 0; i-- {
		switch n := around[i].(type) {
		case *ast.ParenExpr:
			continue
		case *ast.UnaryExpr:
			continue
		case *ast.CallExpr:
			return p.info.Types[n.Fun].IsType() || p.standard(n.Fun)
		case *ast.BinaryExpr:
			switch n.Op {
			case token.QUO, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
				return true
			case token.MUL:
				continue
			}
			return false
		default:
			return false
		}
	}
	return false
}

// standard reports whether a function is one of math or fmt: math's are calls or
// single instructions, fmt's take interfaces.
func (p *checked) standard(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := p.info.Uses[sel.Sel].(*types.Func)
	return ok && f.Pkg() != nil && (f.Pkg().Path() == "math" || f.Pkg().Path() == "fmt")
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}
