// Package run carries out a plan: it takes a campaign from its first run to its
// last, hands each run to a back end, decides whether the result may be
// believed, repeats what was spoiled by the host, and stores every finished run
// in one transaction. It must not know how a back end reaches its nodes, nor how
// results are shown: it tells an Observer.
package run
