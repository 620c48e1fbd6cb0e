// Package pace drives a discrete-event engine by the wall clock: one locked
// thread that waits in epoll for descriptors and for the next event that the
// outside can see, fires events at their nominal virtual time however late the
// thread woke, and records how late that was.
//
// It must not know the medium: it gets an engine, descriptors and a function
// that says when to wake.
package pace
