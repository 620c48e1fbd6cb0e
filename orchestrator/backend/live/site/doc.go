// Package site says what an experiment wants of real nodes: which node of an
// inventory plays which of the experiment's, what each is ordered to be, and the
// same in commands that can be read before anything is touched. It is pure: it
// reaches no node, and the same experiment and inventory give the same orders.
package site
