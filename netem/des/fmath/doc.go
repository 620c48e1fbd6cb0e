// Package fmath holds the transcendental functions whose results may decide an
// event: exponential, logarithm, powers of ten, erfc and the normal quantile,
// equal to the last bit on every architecture.
//
// The standard library's versions are assembly on some architectures, and the
// compiler may fuse a multiplication and an addition into one rounding on
// others (Go specification, "Floating-point operators"); an explicit
// float64(…) around each product forbids that. It knows numbers only.
package fmath
