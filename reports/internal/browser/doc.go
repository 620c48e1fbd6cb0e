// Package browser drives an installed Chromium for the tests of the reports:
// it loads a page as a reader would and says what the page asked for, what it
// complained about and how wide it became. It serves tests only.
package browser
