package sshclient

import (
	"errors"
	"strings"
)

// maxCommand bounds a command line in bytes: the node's kernel takes 128 KiB as one
// argument of its shell, and so much is of no use anyway.
const maxCommand = 120_000

// Quote writes words as a command line that every shell splits into the same words
// again: sh, bash, dash, ash, zsh, ksh and fish, which the server starts for the
// user whatever is asked for. Words with a zero byte cannot be given to a program.
func Quote(argv ...string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("no program to run")
	}
	var b strings.Builder
	for i, w := range argv {
		if strings.IndexByte(w, 0) >= 0 {
			return "", errors.New("a word of the command has a zero byte, which no program can be given")
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		// The first word could be one of the shell's own (if, time, an alias) or,
		// with a dash, an option of it: quoted, it is neither.
		if i > 0 && plain(w) {
			b.WriteString(w)
		} else {
			quoteWord(&b, w)
		}
		if b.Len() > maxCommand {
			return "", errors.New("the command is longer than 120000 bytes: give what is large on standard input")
		}
	}
	return b.String(), nil
}

// plain words mean themselves to every shell.
func plain(w string) bool {
	for i := range len(w) {
		c := w[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("_-./:@,+", c) >= 0:
		default:
			return false
		}
	}
	return w != ""
}

// quoteWord puts everything into single quotes but those themselves and
// backslashes: fish gives a backslash in single quotes a meaning, others do not.
func quoteWord(b *strings.Builder, w string) {
	if w == "" {
		b.WriteString("''")
		return
	}
	in := false
	for i := range len(w) {
		special := w[i] == '\'' || w[i] == '\\'
		if special == in {
			b.WriteByte('\'')
			in = !in
		}
		if special {
			b.WriteByte('\\')
		}
		b.WriteByte(w[i])
	}
	if in {
		b.WriteByte('\'')
	}
}
