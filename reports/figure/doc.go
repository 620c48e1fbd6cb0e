// Package figure draws the figures of hopbed's reports as SVG and as PNG, each with
// the numbers behind it as CSV and as a table that pgfplots reads. Its colours are those of Okabe and Ito, told apart
// by colour-blind readers; line styles, markers and hatches tell the series
// apart in grey as well.
//
// It draws the numbers that it is given and must not know the database. Equal
// input gives equal bytes. It writes SVG itself: figures in a report follow the
// page's colours (dark, light, print), font and width, which needs classes and
// text that a general plotting library's output does not have. Images are painted
// from the same shapes and the same style sheet, without a browser.
package figure
