package netns

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one OS thread that lives as long as the
// driver. Pdeathsig fires when the *thread* that started a process ends
// (prctl(2), PR_SET_PDEATHSIG), and the Go runtime may end any other thread.
type spawner struct {
	work chan spawn
}

type spawn struct {
	cmd  *exec.Cmd
	done chan error
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan spawn)}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for w := range s.work {
			w.done <- w.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	w := spawn{cmd, make(chan error, 1)}
	s.work <- w
	return <-w.done
}

// close ends the thread, and with it every process that is still there.
func (s *spawner) close() { close(s.work) }
