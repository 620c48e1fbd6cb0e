package capture

import (
	"bufio"
	"errors"
	"io"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Note is an event that a sniffer cannot see, such as the begin of a flow.
type Note struct {
	At   vtime.Time
	Node int
	// What is the first word, Text the rest of the line; neither has line ends.
	What, Text string
	// Rounded: At is rounded down by less than this. The line comes behind those
	// of that time.
	Rounded vtime.Duration
}

// Merge copies an event log of a network from src to dst and puts the notes,
// which are in order of time, in their places.
func Merge(dst io.Writer, src io.Reader, cfg Config, notes []Note) error {
	var l log
	l.init(&cfg)
	in, out := bufio.NewReaderSize(src, recordSize), bufio.NewWriterSize(dst, bufferSize)
	put := func(n Note) {
		b := l.begin(nil, n.At, l.nodes[n.Node], n.What)
		if n.Text != "" {
			b = append(append(b, ' '), n.Text...)
		}
		out.Write(append(b, '\n')) // Flush reports an error
	}
	next := 0
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			if at, ok := timeOf(line); ok {
				for ; next < len(notes) && notes[next].At.Add(notes[next].Rounded) <= at; next++ {
					put(notes[next])
				}
			}
			out.Write(line)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // a line that is longer than any of ours goes through in pieces
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, n := range notes[next:] {
		put(n)
	}
	return out.Flush()
}

// timeOf reads the time at the begin of a line.
func timeOf(line []byte) (vtime.Time, bool) {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	t, digits := vtime.Time(0), 0
	for ; i < len(line) && line[i] != ' '; i++ {
		switch c := line[i]; {
		case c >= '0' && c <= '9':
			t = 10*t + vtime.Time(c-'0')
			digits++
		case c != '.':
			return 0, false
		}
	}
	return t, digits >= 10 // nine of them behind the point
}
