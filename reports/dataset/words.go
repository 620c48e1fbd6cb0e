package dataset

import "fmt"

// CountOf is a number of things in words, such as "1 point" and "2 points".
func CountOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Verb is the form of a verb for so many things.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
