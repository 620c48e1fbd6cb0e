// Package etx computes the expected transmission count of links and the
// shortest paths over them: ETX = 1/(df·dr) (De Couto, Aguayo, Bicket, Morris,
// MobiCom 2003), deterministic Dijkstra, next-hop tables.
//
// It works on delivery probabilities and must not know where they come from:
// a radio model, probes between real nodes, or an import.
package etx
