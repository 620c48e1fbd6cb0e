// Package lanetest runs a package's tests in the kernel lane: the same test
// function, outside, builds the package's test binary, boots the lane with it, and
// folds what happened there into subtests; inside, it runs them. Without QEMU or a
// kernel the test is skipped with a typed reason.
package lanetest
