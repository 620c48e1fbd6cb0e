package hop

// fifo is a queue in a circular buffer; it allocates only to grow.
type fifo[T any] struct {
	buf  []T
	head int
	n    int
}

func (q *fifo[T]) len() int { return q.n }

// at returns the i-th element from the front.
func (q *fifo[T]) at(i int) *T { return &q.buf[(q.head+i)%len(q.buf)] }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.buf) {
		grown := make([]T, max(16, 2*q.n))
		for i := range q.n {
			grown[i] = *q.at(i)
		}
		q.buf, q.head = grown, 0
	}
	q.n++
	*q.at(q.n - 1) = v
}

func (q *fifo[T]) pop() T {
	var zero T
	p := q.at(0)
	v := *p
	*p = zero
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	return v
}

// remove deletes every element for which drop is true, keeping the order.
func (q *fifo[T]) remove(drop func(*T) bool) {
	var zero T
	kept := 0
	for i := range q.n {
		if drop(q.at(i)) {
			continue
		}
		*q.at(kept) = *q.at(i)
		kept++
	}
	for i := kept; i < q.n; i++ {
		*q.at(i) = zero
	}
	q.n = kept
}
