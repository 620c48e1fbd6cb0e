// Package export writes stored results in the formats of other programs: tables
// as Parquet, and the series of one run as the data of flent.
//
// It reads through the store and must not know SQL, nor how results came about or
// are reported. CSV and JSON are the store's own.
package export
