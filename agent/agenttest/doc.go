// Package agenttest makes small networks for the agent's tests: one real agent
// process per node, each in a network namespace of its own, joined by a hub
// that forwards frames between their TAP devices with a chosen loss, rate and
// queue per direction. It stands in for the radio, which the tests of the
// medium cover.
//
// It is for tests only and must not be imported by the product.
package agenttest
