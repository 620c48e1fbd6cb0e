// Package topology turns the topology block of an experiment into nodes,
// positions, links and routes: generators (random mesh, chain, grid, star),
// listed nodes, and the choice of the pairs between which flows run.
//
// Everything follows from the seed and the repetition, so that all points of a
// matrix meet the same conditions. It must not know which back end will use
// the result, nor what any transport makes of it.
package topology
