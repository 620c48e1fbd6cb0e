// Package kernelcompare runs the same flows through the model TCP in virtual
// time and through the kernel's TCP over a user-space bottleneck between two
// namespaces, and prints the ratios model/kernel. It has tests only; nothing
// may import it, and nothing in it passes or fails by a time or a ratio. The
// same paths are an experiment for hopbed run, paths.yaml.
package kernelcompare
