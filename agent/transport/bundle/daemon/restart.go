//go:build linux

package daemon

import (
	"github.com/hopbed/hopbed/netem/vtime"
)

// switchOff forgets all that is in memory and says nothing to anybody.
func (f *flow) switchOff(now vtime.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.machine == nil {
		return
	}
	f.before, f.most = f.stats(), f.held()
	f.machine = nil
	for _, l := range f.links {
		l.forget()
		l.vanish(now)
	}
	f.closing()
	if f.listener != nil {
		_ = f.listener.Close() // fails only when it is closed already
	}
	f.changed.Broadcast()
}

// switchOn begins the next life.
func (f *flow) switchOn(now vtime.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.machine != nil || now >= f.stop {
		return nil
	}
	if err := f.listen(); err != nil {
		return err
	}
	f.start()
	return nil
}
