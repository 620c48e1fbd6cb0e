// Package arch holds no code: its tests keep the shape of the project. They
// check who may import whom (with the reason), which calls a deterministic
// package may not make, that every package says what it is for, and that no
// file grows past what can be read in one sitting.
package arch
