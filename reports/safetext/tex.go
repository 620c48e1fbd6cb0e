package safetext

import "strings"

// TeX makes s harmless text of a LaTeX document: what TeX takes for commands is
// written as itself, and the signs of reports as LaTeX has them. Letters of any
// script stay: those beyond Latin need a TeX engine and a font that have them.
func TeX(s string) string {
	return texEscaper.Replace(Line(s, 0))
}

var texEscaper = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`, `%`, `\%`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `"`, `\textquotedbl{}`, `|`, `\textbar{}`, `<`, `\textless{}`, `>`, `\textgreater{}`,
	"\u00a0", `~`, "\u202f", `\,`, "×", `$\times$`, "∞", `$\infty$`, "≤", `$\le$`, "≥", `$\ge$`, "−", `$-$`, "±", `$\pm$`, "→", `$\rightarrow$`,
	"µ", `$\mu$`, "Σ", `$\Sigma$`, "²", `\textsuperscript{2}`, "√", `$\surd$`, "†", `\dag{}`, "–", `--`, "’", `'`, "…", `\dots{}`, "·", `$\cdot$`,
)
