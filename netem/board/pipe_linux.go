package board

// The queues of pipes are numbered 2·pipe + end, where end is the sender's. Their
// cells lie behind those of the radios.

// SetPipeLimit publishes how many frames the queue of a pipe's direction holds.
func (b *Board) SetPipeLimit(q, limit int) { b.pipe(q).limit.Store(uint32(max(0, limit))) }

// PipeArrived publishes that n frames came for a pipe's queue, of which refused
// were turned away because it was full, and that queued frames wait in it now.
func (b *Board) PipeArrived(q, n, refused, queued int) { b.pipe(q).arrive(n, refused, queued) }

// PipeLeft publishes that n frames left a pipe's queue and that queued wait in
// it now. node is the sender: it is woken as by Left.
func (b *Board) PipeLeft(q, node, n, queued int) {
	if b.pipe(q).leave(n, queued) {
		b.wake(node)
	}
}

// PipeState reads the queue of a pipe's direction.
func (b *Board) PipeState(q int) State { return b.pipe(q).state() }
