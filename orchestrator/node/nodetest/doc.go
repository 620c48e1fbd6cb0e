// Package nodetest holds the conformance test of node drivers: what every
// driver must do, whatever it reaches its nodes by. A driver's own tests call
// Run with a way to make one whose agents behave like Agent.
package nodetest
