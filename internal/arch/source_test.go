package arch

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPackageSaysWhatItIsFor: a doc.go of one paragraph or more.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range list(t) {
		doc := filepath.Join(p.Dir, "doc.go")
		name := p.ImportPath
		if strings.Contains(name, "/cmd/") || strings.Contains(name, "/tools/") {
			doc = filepath.Join(p.Dir, "main.go")
		}
		if _, err := os.Stat(doc); err != nil {
			t.Errorf("%s has no %s", name, filepath.Base(doc))
		}
		if len(strings.Fields(p.Doc)) < 8 {
			t.Errorf("%s: the package comment says too little: %q", name, p.Doc)
		}
	}
}

// TestFilesCanBeReadInOneSitting: 600 lines is the limit for product code.
func TestFilesCanBeReadInOneSitting(t *testing.T) {
	walkGo(t, "../..", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
		}
		if n > 600 {
			t.Errorf("%s has %d lines: split it by mechanism", path, n)
		}
	})
}

// TestDeterministicPackagesMakeNoForbiddenCalls: no goroutine, no channel and
// no select in the packages whose trace must be equal to the bit; the imports
// test keeps clocks and global randomness out.
func TestDeterministicPackagesMakeNoForbiddenCalls(t *testing.T) {
	for _, dir := range deterministic {
		entries, err := os.ReadDir(filepath.Join("../..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join("../..", dir, e.Name())
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a goroutine in a deterministic package", fset.Position(n.Pos()))
				case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
					t.Errorf("%s: a channel in a deterministic package", fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

func walkGo(t *testing.T, root string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
