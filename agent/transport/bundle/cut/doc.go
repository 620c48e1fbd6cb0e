// Package cut says which part of a flow's data each bundle holds, at both ends:
// a message of a workload with messages is one bundle, or several where it is
// longer than a bundle may be; other data are cut into bundles of one size.
//
// It must not know how bundles travel.
package cut
