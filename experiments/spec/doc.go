// Package spec reads experiment files: strict YAML in, typed configurations
// out, one for each point of the file's matrix. Whatever is wrong with a file
// is reported with its file:line:column, the offending value and what would be
// allowed, several mistakes at once.
//
// It knows the names and units of everything an experiment can say, and
// nothing of how it is done: it must not import a medium, a transport, a back
// end or the operating system beyond reading the file it is given and those
// that this one names. (netem/pipe, deploy/inventory and topology/interchange are
// imported for their readers of such files alone.)
package spec
