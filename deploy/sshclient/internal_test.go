package sshclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAlgorithms(t *testing.T) {
	good, old := []string{"a", "b", "c-1"}, []string{"old", "older"}
	for list, want := range map[string]string{
		"": "a b c-1", "+old": "a b c-1 old", "+a,old*": "a b c-1 old older", "-b": "a c-1", "-c*,a": "b", "^c-1": "c-1 a b", "^older,b": "older b a c-1", "b,a": "b a", "b,only-openssh,older": "b older",
	} {
		got, err := algorithms("K", list, good, old)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
	for _, list := range []string{"x", "-*", "x,y"} {
		if got, err := algorithms("K", list, good, old); err == nil || !strings.Contains(err.Error(), "K") {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if strings.Join(good, " ") != "a b c-1" {
		t.Errorf("the defaults were changed: %v", good)
	}
}

const edKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// FuzzKnownHosts: whatever the file, reading ends; a line that means nothing is
// noted with its place and matches nobody.
func FuzzKnownHosts(f *testing.F) {
	for _, s := range []string{"h " + edKey, "|1|c2FsdA==|aGFzaA==| " + edKey, "|1|c2FsdA==|aGFzaA== " + edKey, "|1|| " + edKey, "@revoked * " + edKey + " x", "@cert-authority *.x,!y " + edKey, "@x h " + edKey, "@revoked", "h", "h ssh-rsa " + edKey, "# x\n\n \t\r\n", ",,, " + edKey, "!,! " + edKey} {
		f.Add(s, "h")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		file := filepath.Join(t.TempDir(), "known")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := readKnownHosts([]string{file})
		if err != nil {
			return
		}
		for _, b := range k.bad {
			if !strings.HasPrefix(b, file+":") || strings.ContainsAny(b, "\n\x1b") {
				t.Fatalf("%q", b)
			}
		}
		for _, l := range k.of(name) {
			if l.key == nil || !strings.HasPrefix(l.at, file+":") {
				t.Fatalf("%+v", l)
			}
		}
	})
}
