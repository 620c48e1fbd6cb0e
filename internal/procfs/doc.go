// Package procfs reads the few facts about processes that the project needs to
// recognise its own ones: start time, environment, namespace, name. It must not
// know why somebody asks.
package procfs
