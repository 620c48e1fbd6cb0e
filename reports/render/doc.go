// Package render writes reports: one offline HTML page, Markdown for terminals
// and issues, and JSON for programs, all from the same Report.
//
// It says what was compared, how each number was obtained and what must not be
// concluded. It must not know how results came about, nor compute statistics of
// its own. Whatever users, nodes and files named is shown escaped.
package render
