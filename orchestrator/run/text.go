package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
)

// Text is the experiment as it was run: the file, followed by what the command
// line changed, as comments. It is what the database and the report keep, and
// its hash decides which campaign --resume goes on with.
func Text(e *spec.Experiment) string {
	var b strings.Builder
	b.Write(bytes.TrimRight(e.Source, "\n"))
	b.WriteByte('\n')
	if e.Quick {
		b.WriteString(quickLine + "\n")
	}
	for _, a := range e.Sets() {
		b.WriteString(setLine + a.Key + "=" + strings.ReplaceAll(a.Value, "\n", " ") + "\n")
	}
	// A file that changed makes another experiment, though the text is the same.
	for _, f := range e.Files() {
		b.WriteString(fileLine + strconv.Quote(f.Path) + ", sha256 " + f.SHA256 + "\n")
	}
	return b.String()
}

func sha256Hex(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
