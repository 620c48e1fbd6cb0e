// Package reexec lets one binary play several parts: the controller starts
// itself again under another name (argv[0]) as agent, emulator or traffic
// generator. The table of parts is passed explicitly by main and by TestMain;
// nothing registers itself.
//
// It must not know any of the parts.
package reexec
