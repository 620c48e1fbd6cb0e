// Package safetext makes text that a user, a node or a file named harmless to
// show: control characters, terminal escapes and direction overrides become
// visible escapes. It knows nothing of the format that the text ends up in;
// escaping for HTML, Markdown or CSV comes on top.
package safetext
