package sshclient_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/internal/testenv"
)

// shells are those that an account may have. The server starts them with -c.
var shells = [][]string{{"sh"}, {"dash"}, {"busybox", "ash"}, {"busybox", "sh"}, {"bash"}, {"zsh"}, {"ksh"}, {"mksh"}, {"fish"}}

// adversarial are words that a shell would like to do something with.
func adversarial() [][]string {
	every := make([]byte, 0, 255)
	for b := 1; b < 256; b++ {
		every = append(every, byte(b))
	}
	var single []string
	for _, b := range every {
		single = append(single, string([]byte{b}), "x"+string([]byte{b}), string([]byte{b})+"y")
	}
	cases := [][]string{
		{string(every)}, single, {""}, {"", "", "a", ""}, {" "}, {"\n"}, {"a\nb\n"}, {"'"}, {"''"}, {"'\\''"}, {`\`}, {`\\`}, {`\'`}, {`'\`}, {`"`}, {`$HOME`, `${HOME}`, "$(id)", "`id`"},
		{"; reboot"}, {"a;b", "a&b", "a|b", "a>b", "a<b"}, {"*", "?", "[a-z]", "~", "~root", "{a,b}", "!!", "!$", "#x", "a#b"}, {"-n", "--", "-e", "a=b", "IFS=x"},
		{"%s", "%n", "\\x41", "\\0101", "\\c"}, {"é", "日本", "\xff\xfe", "\xc3"}, {"if", "then", "exec", "time", "function"}, {"\x1b[2J", "\x7f", "\t"}, {strings.Repeat("'", 999)}, {strings.Repeat(`\'`, 499)},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		var words []string
		for range 1 + r.IntN(6) {
			w := make([]byte, r.IntN(40))
			for i := range w {
				w[i] = byte(1 + r.IntN(255))
				if r.IntN(3) == 0 {
					w[i] = "'\\\"$` \n;!"[r.IntN(9)]
				}
			}
			words = append(words, string(w))
		}
		cases = append(cases, words)
	}
	return cases
}

// Every word reaches the program as it is, whatever shell the account has.
func TestQuoteInRealShells(t *testing.T) {
	testenv.Need(t, testenv.Program("sh"), testenv.Program("env"))
	tried := 0
	for _, shell := range shells {
		if shell[0] != "sh" && testenv.Check(testenv.Program(shell[0])) != nil {
			continue
		}
		tried++
		for _, words := range adversarial() {
			command, err := sshclient.Quote(append([]string{"env", "printf", `%s\0`}, words...)...)
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd := exec.Command(shell[0], append(shell[1:len(shell):len(shell)], "-c", command)...)
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
				t.Errorf("%v: %v: %s\n got %q\nwant %q\n for %s", shell, err, stderr.String(), out, want, command)
			}
		}
	}
	if tried < 1 {
		t.Error("no shell was tried")
	}
	t.Logf("%d shells", tried)
}

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"uname", "-m"}, "'uname' -m"},
		{[]string{"/bin/ls", "a b", "it's", `\`, ""}, `'/bin/ls' 'a b' 'it'\''s' \\ ''`},
		{[]string{"if"}, "'if'"},
		{[]string{"-c"}, "'-c'"},
		{[]string{"x", "A=b", "~"}, "'x' 'A=b' '~'"},
	} {
		if got, err := sshclient.Quote(c.words...); err != nil || got != c.want {
			t.Errorf("%q: %s, %v", c.words, got, err)
		}
	}
	for _, bad := range [][]string{nil, {""}, {"a\x00b"}, {"a", "\x00"}, {"a", strings.Repeat("x", 200_000)}} {
		if got, err := sshclient.Quote(bad...); err == nil {
			t.Errorf("%.20q is written %.20s", bad, got)
		}
	}
}

// The same through a real sshd, which gives the line to the account's shell.
func TestQuoteThroughSSH(t *testing.T) {
	c := connect(t)
	for i, words := range adversarial() {
		out, _, err := c.Run(within(t), nil, append([]string{"/usr/bin/env", "printf", `%s\0`}, words...)...)
		if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Fatalf("%d: %v\n got %q\nwant %q", i, err, out, want)
		}
	}
	_, _, err := c.Run(within(t), nil, "echo", "a\x00b")
	wantReason(t, err, sshclient.Settings, "zero byte")
}

func FuzzQuote(f *testing.F) {
	for _, w := range adversarial() {
		f.Add(fmt.Sprint(w))
	}
	testenv.Need(f, testenv.Program("sh"))
	f.Fuzz(func(t *testing.T, w string) {
		command, err := sshclient.Quote("printf", "%s", w)
		if err != nil {
			return
		}
		out, err := exec.Command("sh", "-c", command).Output()
		if err != nil || string(out) != w {
			t.Fatalf("%q: %q, %v", w, out, err)
		}
	})
}
