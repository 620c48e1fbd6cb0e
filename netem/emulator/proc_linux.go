package emulator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Proc is a running emulator. Its methods are safe for concurrent use.
type Proc struct {
	opt    Options
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr lastWords
	ready  Ready
	done   chan struct{}
	err    error // written before done is closed

	mu       sync.Mutex
	seq      uint64
	pending  map[uint64]chan *reply
	stopping bool
}

// Start starts the emulator and returns when its devices exist and frames
// flow. The medium runs from then on; Begin tells it the run's clock.
//
// The errors are a *tap.Unavailable where the host cannot do it, an *Exited
// where the process ended.
func Start(ctx context.Context, cfg *Config, opt Options) (*Proc, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if opt.Grace <= 0 {
		opt.Grace = DefaultGrace
	}
	if opt.Journal == nil {
		opt.Journal = func(string, string) error { return nil }
	}
	if err := opt.Journal(KindEmulator, "emulator"); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	p := &Proc{opt: opt, done: make(chan struct{}), pending: map[uint64]chan *reply{}}
	files := boardFiles(opt.Board)
	board := len(files)
	for _, f := range []*os.File{opt.Packets, opt.Events} {
		if f != nil {
			files = append(files, f)
		}
	}
	p.cmd = &exec.Cmd{
		Path: Self, Args: []string{Part},
		// The runtime's preemption signals would only interrupt the pacing thread's
		// waits.
		Env:        append(append(os.Environ(), opt.Env...), "HOPBED_PART="+Part, "GODEBUG=asyncpreemptoff=1"),
		Stderr:     &p.stderr,
		ExtraFiles: files,
		WaitDelay:  time.Second,
		SysProcAttr: &syscall.SysProcAttr{
			Pdeathsig: syscall.SIGKILL,
			Setpgid:   true, // a terminal's Ctrl-C is for the controller
		},
	}
	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	r, err := p.ask(ctx, order{Config: cfg, Board: board, Packets: opt.Packets != nil, Events: opt.Events != nil})
	if err == nil && r.Ready == nil {
		err = errors.New("emulator: the configuration was answered without readiness")
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	p.ready = *r.Ready
	return p, nil
}

// launch starts the process on a thread of its own that waits for it:
// Pdeathsig fires when the starting thread ends, so that thread must not be one
// that the runtime may retire earlier.
func (p *Proc) launch() error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.in = inR, outW, inW
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := p.cmd.Start()
		inR.Close()
		outW.Close()
		started <- err
		if err != nil {
			inW.Close()
			outR.Close()
			return
		}
		if err := p.opt.Journal(KindPID, identity(p.cmd.Process.Pid)); err != nil {
			// It runs already; without this entry it is still found by its tag.
			fmt.Fprintf(&p.stderr, "journal: %v\n", err)
		}
		read := make(chan struct{})
		go func() { p.receive(outR); close(read) }()
		p.wait(read)
		outR.Close()
	}()
	return <-started
}

// identity is PID and start time. The latter comes from field 22 of
// proc_pid_stat(5), counted from behind the command name.
func identity(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		if f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]); len(f) > 19 {
			return fmt.Sprintf("%d:%s", pid, f[19])
		}
	}
	return fmt.Sprintf("%d:0", pid)
}

func (p *Proc) wait(read <-chan struct{}) {
	_ = p.cmd.Wait() // ProcessState says more
	select {         // what it wrote before its end counts
	case <-read:
	case <-time.After(time.Second):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	state := "unknown"
	if p.cmd.ProcessState != nil {
		state = p.cmd.ProcessState.String()
	}
	if !p.stopping || p.cmd.ProcessState == nil || !p.cmd.ProcessState.Success() {
		p.err = &Exited{PID: p.cmd.Process.Pid, State: state, Stderr: p.stderr.String()}
	}
	close(p.done)
}

// receive hands replies to those who wait for them.
func (p *Proc) receive(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		r := &reply{}
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			fmt.Fprintf(&p.stderr, "a reply that cannot be read: %v: %.200s\n", err, lines.Text())
			continue
		}
		if r.Health != nil {
			if p.opt.OnHealth != nil {
				p.opt.OnHealth(*r.Health)
			}
			continue
		}
		p.mu.Lock()
		c := p.pending[r.Seq]
		delete(p.pending, r.Seq)
		p.mu.Unlock()
		if c != nil {
			c <- r
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintf(&p.stderr, "read its replies: %v\n", err)
	}
}

// ask sends an order and waits for its reply.
func (p *Proc) ask(ctx context.Context, o order) (*reply, error) {
	c := make(chan *reply, 1)
	p.mu.Lock()
	p.seq++
	o.Version, o.Seq = wireVersion, p.seq
	p.pending[o.Seq] = c
	line, err := json.Marshal(o)
	if err == nil {
		_, err = p.in.Write(append(line, '\n')) // under the lock: lines must not mix
	}
	p.mu.Unlock()
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		return nil, fmt.Errorf("emulator: send an order: %w", err)
	}
	hung := time.NewTimer(p.opt.Grace)
	defer hung.Stop()
	select {
	case r := <-c:
		return r, r.err()
	case <-p.done:
		select { // it answered, then ended
		case r := <-c:
			return r, r.err()
		default:
		}
		if p.err != nil {
			return nil, p.err
		}
		return nil, errors.New("emulator: already stopped")
	case <-ctx.Done():
		return nil, fmt.Errorf("emulator: %w", context.Cause(ctx))
	case <-hung.C:
		return nil, fmt.Errorf("emulator: no answer within %v (pid %d)", p.opt.Grace, p.PID())
	}
}

func (r *reply) err() error {
	if r.Unavailable != nil {
		return &tap.Unavailable{What: r.Unavailable.What, Because: r.Unavailable.Because, Do: r.Unavailable.Do, Err: errors.New(r.Error)}
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// Ready is what the emulator said of itself.
func (p *Proc) Ready() Ready { return p.ready }

// PID is the process id of the emulator.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Begin tells the emulator the run's clock: epochNS is the CLOCK_MONOTONIC of
// its time 0, and [from, to) the measured interval. It must come before the
// interval does, and only once.
func (p *Proc) Begin(ctx context.Context, epochNS int64, from, to vtime.Time) error {
	_, err := p.ask(ctx, order{Begin: &beginOrder{EpochNS: epochNS, From: from, To: to}})
	return err
}

// SetLoss changes the share of frames dropped after the receiver's MAC.
func (p *Proc) SetLoss(ctx context.Context, l Loss) error {
	_, err := p.ask(ctx, order{Loss: &l})
	return err
}

// SetNodeUp switches a node's radio.
func (p *Proc) SetNodeUp(ctx context.Context, node int, up bool) error {
	_, err := p.ask(ctx, order{Node: &nodeOrder{node, up}})
	return err
}

// Stop ends the run, which removes every device, and returns the report when
// the process has ended.
func (p *Proc) Stop(ctx context.Context) (*Report, error) {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	r, err := p.ask(ctx, order{Stop: true})
	if err == nil && r.Report == nil {
		err = errors.New("emulator: stopped without a report")
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	_ = p.in.Close()
	select {
	case <-p.done:
	case <-time.After(p.opt.Grace):
		p.Kill()
		return r.Report, fmt.Errorf("emulator: did not end within %v after its report", p.opt.Grace)
	case <-ctx.Done():
		p.Kill()
		return r.Report, fmt.Errorf("emulator: %w", context.Cause(ctx))
	}
	return r.Report, p.err
}

// Kill ends the process at once, without a report, and returns when it has
// been reaped.
func (p *Proc) Kill() {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
}

// Done is closed when the process has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Err is nil while the emulator runs and after an ordered end; otherwise an
// *Exited.
func (p *Proc) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// lastWords keeps the end of what a process wrote to standard error.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

func (l *lastWords) Write(b []byte) (int, error) {
	const keep = 8 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, b...)
	if over := len(l.buf) - keep; over > 0 {
		l.buf = append(l.buf[:0], l.buf[over:]...)
	}
	return len(b), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.buf))
}
