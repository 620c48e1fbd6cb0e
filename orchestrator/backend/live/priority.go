//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The priorities that agents on this host get, the first that is permitted. A
// busy host would otherwise delay them by seconds, while the medium, which has
// real-time priority, keeps time and the run looks sound. Nice alone does not
// help where the kernel groups tasks by session (sched_autogroup): it counts
// within the group only.
//
// Agents stay below the medium (SCHED_FIFO 20), so that it keeps time even
// when one of them has much to do.
const (
	agentRR   = 5   // SCHED_RR
	agentNice = -19 // where real-time priority is not permitted
)

// raise gives every thread of a process the agents' priority; threads that it
// starts later inherit it. It returns what they got.
func raise(pid int) (string, error) {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: agentRR}
	rrErr := eachThread(pid, func(tid int) error { return unix.SchedSetAttr(tid, &attr, 0) })
	if rrErr == nil {
		return fmt.Sprintf("SCHED_RR %d", agentRR), nil
	}
	if err := eachThread(pid, func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, agentNice) }); err != nil {
		return "normal", fmt.Errorf("SCHED_RR: %w; nice %d: %w", rrErr, agentNice, err)
	}
	return fmt.Sprintf("nice %d", agentNice), nil
}

// eachThread applies f to the threads of a process until no new one appears: a
// thread that was started meanwhile by one not yet raised has the old priority.
func eachThread(pid int, f func(tid int) error) error {
	done := map[int]bool{}
	for {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		fresh := false
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], fresh = true, true
			if err := f(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
}

// raiseAgents raises all agents and records what they got.
func (r *session) raiseAgents() {
	for i, h := range r.handles {
		pid := h.PID()
		if pid == 0 {
			continue // on another host: its owner decides
		}
		if r.b.opt.BoardByPID {
			// The handle's is that of the server which started the agent.
			pid = r.hellos[i].PID
		}
		got, err := raise(pid)
		r.rec.Run.Facts["agent_priority"] = got
		if err != nil {
			r.rec.Run.Warnings = append(r.rec.Run.Warnings, fmt.Sprintf("node %s: the agent has no raised priority, a busy host may delay it: %v", h.Name(), err))
			return
		}
	}
}
