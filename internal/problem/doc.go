// Package problem is how mistakes in the files that users write are told: with
// file, line and column, what is wrong, what would be right and what was probably
// meant. It must not know any format.
package problem
