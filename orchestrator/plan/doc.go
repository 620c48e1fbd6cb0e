// Package plan turns an experiment into an ordered list of runs with their
// seeds, and a run into its scenario: nodes, links, routes and the pairs of its
// flows. It is pure: the same experiment gives the same plan, and planning
// touches neither disk nor kernel. It must not know a back end.
package plan
