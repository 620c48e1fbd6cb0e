package emulator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/des/pace"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Records wait in memory for the disk, which may stand still for as long as these
// fill: half a second at 140,000 frames per second. Then they are dropped and
// counted: the medium is never made to wait.
const (
	packetRoom = 32 * vtime.MiB
	eventRoom  = 16 * vtime.MiB
)

// lastWrite is how long the disk may take for what waits at the end of a run.
const lastWrite = 15 * time.Second

// recorder is the capture of a run. The pacing thread encodes; goroutines at
// ordinary priority write.
type recorder struct {
	sniffer         *capture.Sniffer
	packets, events *capture.Stream // nil: not wanted
	files           []*os.File
	writers         sync.WaitGroup
}

// newRecorder returns a recorder into the files, of which either may be nil.
func newRecorder(cfg *Config, packets, events *os.File) (*recorder, error) {
	r := &recorder{}
	add := func(f *os.File, room vtime.Bytes) *capture.Stream {
		if f == nil {
			return nil
		}
		r.files = append(r.files, f)
		return capture.NewBackground(f, room)
	}
	r.packets, r.events = add(packets, packetRoom), add(events, eventRoom)
	var err error
	r.sniffer, err = capture.NewSniffer(cfg.captureConfig(), r.packets, r.events)
	return r, err
}

// record puts a recorder onto the medium and the pipes; a wire that is renewed
// does it again by itself.
func (c *core) record(r *recorder) {
	c.recorder = r
	if c.medium != nil {
		c.medium.SetMonitor(r.sniffer)
	}
	for _, w := range c.wires {
		w.watch()
	}
}

// watch puts the recorder onto the wire's pipe.
func (w *wire) watch() {
	if r := w.c.recorder; r != nil {
		w.pipe.SetMonitor(r.sniffer.Pipe(w.cell/2, w.cell%2))
	}
}

// start starts the writers.
func (r *recorder) start() {
	for _, s := range []*capture.Stream{r.packets, r.events} {
		if s == nil {
			continue
		}
		r.writers.Go(func() {
			runtime.LockOSThread()
			if err := pace.Lower(); err != nil {
				fmt.Fprintln(os.Stderr, err) // it is only less polite then
			}
			s.Drain()
		})
	}
}

// begin sets the run's time 0; on the pacing thread.
func (r *recorder) begin(epoch vtime.Time, in time.Duration) {
	if r != nil {
		r.sniffer.Begin(epoch, "time 0 is "+time.Now().Add(in).UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
}

// flush lets readers of the files see what there is; on the pacing thread.
func (r *recorder) flush() {
	if r != nil {
		r.sniffer.Flush()
	}
}

// end completes the files after the loop's end.
func (r *recorder) end(now vtime.Time) *CaptureReport {
	if r == nil {
		return nil
	}
	r.sniffer.End(now)
	out := &CaptureReport{Stats: r.sniffer.Stats()}
	written := make(chan struct{})
	go func() { r.writers.Wait(); close(written) }()
	select {
	case <-written:
	case <-time.After(lastWrite):
		out.PacketsError = fmt.Sprintf("the disk did not take all of it within %v", lastWrite)
		out.EventsError = out.PacketsError
		return out // the files end with the process
	}
	out.PacketsError, out.EventsError = reason(r.packets), reason(r.events)
	for _, f := range r.files {
		_ = f.Close() // the controller has them as well
	}
	return out
}

// reason is why a stream is incomplete.
func reason(s *capture.Stream) string {
	if s == nil || s.Err() == nil {
		return ""
	}
	if p, ok := errors.AsType[*fs.PathError](s.Err()); ok {
		return p.Err.Error() // the controller knows the name
	}
	return s.Err().Error()
}
