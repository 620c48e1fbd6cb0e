// Package reference holds what the reproduced papers report, as data: each
// value with its unit and a tag for its source, and each checkable statement
// with its threshold and where the threshold comes from.
//
// It must not know how a value of ours is measured; reports put the two side by
// side. A value that is only remembered (tag M) is never a threshold.
package reference
