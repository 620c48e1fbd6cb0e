package nodetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/orchestrator/node"
)

// Variable is the environment variable that names the node to Agent.
const Variable = "NODETEST_NAME"

// Agent is the agent of the test: it greets, answers every line with its name
// and the line, and ends with its input. The line "die" ends it with status 3
// after some last words, "deaf" makes it ignore the end of its input, "file" makes
// it write to descriptor 3.
func Agent() int {
	fmt.Println("hello", os.Getenv(Variable))
	deaf := false
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "die":
			fmt.Fprintln(os.Stderr, "last words")
			return 3
		case "deaf":
			deaf = true
		case "file":
			if _, err := fmt.Fprint(os.NewFile(3, "descriptor 3"), "inherited"); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		fmt.Println(os.Getenv(Variable), in.Text())
	}
	if deaf {
		time.Sleep(time.Hour)
	}
	return 0
}

// Run checks a driver. make returns a new one that starts Agent; its grace
// period should be short.
func Run(t *testing.T, make func(t *testing.T) node.Driver) {
	t.Run("handles", func(t *testing.T) { handles(t, make(t)) })
	t.Run("unexpected end", func(t *testing.T) { unexpectedEnd(t, make(t)) })
	t.Run("deaf agent", func(t *testing.T) { deafAgent(t, make(t)) })
	t.Run("names", func(t *testing.T) { names(t, make(t)) })
	t.Run("cancelled start", func(t *testing.T) { cancelledStart(t, make(t)) })
	t.Run("close", func(t *testing.T) { closeTwice(t, make(t)) })
	t.Run("files", func(t *testing.T) { files(t, make(t)) })
}

func specs(n int) []node.Spec {
	s := make([]node.Spec, n)
	for i := range s {
		name := fmt.Sprintf("c%02d", i+1)
		s[i] = node.Spec{ID: i, Name: name, Env: []string{Variable + "=" + name}}
	}
	return s
}

type peer struct {
	node.Handle
	in *bufio.Reader
}

func start(t *testing.T, d node.Driver, n int) []peer {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	hs, err := d.Start(context.Background(), specs(n))
	if err != nil {
		t.Fatal(err)
	}
	if len(hs) != n {
		t.Fatalf("%d handles for %d nodes", len(hs), n)
	}
	var ps []peer
	for i, h := range hs {
		p := peer{h, bufio.NewReader(h.Conn())}
		if h.ID() != i || h.Name() != specs(n)[i].Name {
			t.Errorf("handle %d is node %d, %s: the order of the specs is lost", i, h.ID(), h.Name())
		}
		p.expect(t, "hello "+h.Name())
		ps = append(ps, p)
	}
	return ps
}

func (p peer) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.Conn(), line); err != nil {
		t.Fatalf("node %s: %v", p.Name(), err)
	}
}

func (p peer) expect(t *testing.T, want string) {
	t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("node %s said %q, %v; want %q; stderr: %s", p.Name(), line, err, want, p.Stderr())
	}
}

func (p peer) ended(t *testing.T) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatalf("node %s: its end was not noticed", p.Name())
	}
}

func handles(t *testing.T, d node.Driver) {
	ps := start(t, d, 3)
	for _, p := range ps {
		p.say(t, "one")
	}
	for _, p := range ps {
		p.expect(t, p.Name()+" one")
		if p.Err() != nil {
			t.Errorf("a running node has the error %v", p.Err())
		}
	}
	// Closing the connection is the request to end; what was said before counts.
	ps[0].say(t, "two")
	if err := ps[0].Conn().Close(); err != nil {
		t.Error(err)
	}
	ps[0].expect(t, "c01 two")
	if _, err := ps[0].in.ReadByte(); err != io.EOF {
		t.Errorf("after its end: %v, want EOF", err)
	}
	ps[0].ended(t)
	if err := ps[0].Err(); err != nil {
		t.Errorf("an end that was asked for is no error: %v", err)
	}
	if err := ps[1].Stop(context.Background()); err != nil || ps[1].Err() != nil {
		t.Errorf("an ordered end: %v, %v", err, ps[1].Err())
	}
	if err := ps[1].Stop(context.Background()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	ps[2].say(t, "three")
	ps[2].expect(t, "c03 three") // the others' ends do not matter
}

func unexpectedEnd(t *testing.T, d node.Driver) {
	ps := start(t, d, 2)
	ps[0].say(t, "die")
	ps[0].ended(t)
	var e *node.Exited
	if err := ps[0].Err(); !errors.As(err, &e) || e.Name != "c01" || !strings.Contains(e.State, "3") || e.Stderr != "last words" {
		t.Errorf("got %v, want an *Exited with the name, status 3 and the last words", err)
	}
	if ps[1].Err() != nil {
		t.Errorf("the other node: %v", ps[1].Err())
	}
}

func deafAgent(t *testing.T, d node.Driver) {
	ps := start(t, d, 2)
	for _, p := range ps {
		p.say(t, "deaf")
		p.expect(t, p.Name()+" deaf")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // "at once"
	t0 := time.Now()
	if err := ps[0].Stop(ctx); err != nil {
		t.Errorf("stop at once: %v", err)
	}
	ps[0].ended(t)
	if err := d.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	ps[1].ended(t)
	if d := time.Since(t0); d > 30*time.Second {
		t.Errorf("ending two deaf agents took %v", d)
	}
}

func names(t *testing.T, d node.Driver) {
	start(t, d, 2)
	for _, bad := range [][]node.Spec{{{ID: 2, Name: ""}}, {{ID: 2, Name: "c01"}}, {{ID: 2, Name: "x"}, {ID: 3, Name: "x"}}} {
		if hs, err := d.Start(context.Background(), bad); err == nil || len(hs) > 0 {
			t.Errorf("started %d nodes named %q: %v", len(hs), bad[0].Name, err)
		}
	}
}

func cancelledStart(t *testing.T, d node.Driver) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if hs, err := d.Start(ctx, specs(2)); err == nil || len(hs) > 0 {
		t.Errorf("started %d nodes although nobody wants them any more: %v", len(hs), err)
	}
	start(t, d, 2) // the names are free again
}

func closeTwice(t *testing.T, d node.Driver) {
	ps := start(t, d, 2)
	for range 2 {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	for _, p := range ps {
		p.ended(t)
		if p.Err() != nil {
			t.Errorf("an ordered end is no error: %v", p.Err())
		}
	}
	if hs, err := d.Start(context.Background(), specs(1)); err == nil || len(hs) > 0 {
		t.Error("a closed driver started a node")
	}
}

// files: descriptors are inherited, or refused before anything is done; never left
// out.
func files(t *testing.T, d node.Driver) {
	f, err := os.CreateTemp(t.TempDir(), "inherited")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := specs(1)
	s[0].Files = []*os.File{f}
	hs, err := d.Start(context.Background(), s)
	if err != nil {
		if len(hs) > 0 || !strings.Contains(err.Error(), s[0].Name) {
			t.Errorf("refused with %d nodes, and without the node's name: %v", len(hs), err)
		}
		start(t, d, 1) // the name is free
		return
	}
	p := peer{hs[0], bufio.NewReader(hs[0].Conn())}
	p.expect(t, "hello c01")
	p.say(t, "file")
	p.expect(t, "c01 file")
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "inherited" {
		t.Errorf("the file has %q, %v", b, err)
	}
}
