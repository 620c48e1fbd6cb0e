// Package about answers what is asked of an agent's program from outside: which
// version it is, and whether it arrived whole. It must not know sessions.
package about
