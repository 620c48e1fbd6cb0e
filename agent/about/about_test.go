package about

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
)

func TestWhatIsPrintedIsRead(t *testing.T) {
	for _, want := range []Identity{{"v1.2.3", 4}, {"", 7}, {"v0.0.0-20260102030405-0123456789ab+dirty", 1}} {
		got, err := Parse(want.String() + "\n")
		if err != nil || got != want {
			t.Errorf("%q became %+v, %v; want %+v", want, got, err, want)
		}
	}
	for _, bad := range []string{"", "hopbed-agent", "hopbed-agent v1", "hopbed-agent v1, protocol x", "hopbed v1, protocol 4", "hopbed-agent , protocol 4"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestQuestions(t *testing.T) {
	ask := func(args ...string) (bool, int, string) {
		var out, errs bytes.Buffer
		handled, status := Main(args, &out, &errs)
		return handled, status, out.String()
	}
	if handled, status, out := ask("--version"); !handled || status != 0 || out != (Identity{Version(), proto.Version}).String()+"\n" {
		t.Errorf("--version: %v, %d, %q", handled, status, out)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if handled, status, out := ask("--sha256"); !handled || status != 0 || out != hex.EncodeToString(sum[:])+"\n" {
		t.Errorf("--sha256: %v, %d, %q; want %x", handled, status, out, sum)
	}
	for _, other := range [][]string{nil, {"--guarded"}, {"--version", "x"}} {
		if handled, _, out := ask(other...); handled || out != "" {
			t.Errorf("%q was answered: %q", other, out)
		}
	}
}
