package safetext

import "testing"

func TestTeX(t *testing.T) {
	for in, want := range map[string]string{
		`50% of a_b & c`:         `50\% of a\_b \& c`,
		`\input{/etc/passwd} $x`: `\textbackslash{}input\{/etc/passwd\} \$x`,
		"×3.2 (2–5), ≥ 1\u00a0s": `$\times$3.2 (2--5), $\ge$ 1~s`,
		"a\nb":                   `a\textbackslash{}x0ab`,
		"Müller, “x”":            `Müller, “x”`,
		"^^41~<>":                `\textasciicircum{}\textasciicircum{}41\textasciitilde{}\textless{}\textgreater{}`,
	} {
		if got := TeX(in); got != want {
			t.Errorf("TeX(%q) = %q, want %q", in, got, want)
		}
	}
}
