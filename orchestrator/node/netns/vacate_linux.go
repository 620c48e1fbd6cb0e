package netns

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// vacateWithin bounds the wait for processes that an agent started and left.
const vacateWithin = 3 * time.Second

// vacate waits until no process is in the given namespaces (identity → node
// name), killing those that remain: the namespaces are ours, so everything in
// them is. It reports what it could not remove in time.
func vacate(ctx context.Context, spaces map[string]string) error {
	if len(spaces) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), vacateWithin)
	defer cancel()
	for {
		left, err := inside(spaces)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, p := range left {
			killIn(p)
		}
		select {
		case <-ctx.Done():
			l := &node.Leftover{}
			for _, p := range left {
				l.What = append(l.What, fmt.Sprintf("process %d (%s) in the namespace of node %s, after %v", p.pid, procfs.Name(p.pid), spaces[p.namespace], vacateWithin))
			}
			return l
		case <-time.After(5 * time.Millisecond):
		}
	}
}

type tenant struct {
	pid       int
	namespace string
}

// inside lists the processes in the given namespaces. Zombies have none.
func inside(spaces map[string]string) ([]tenant, error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, fmt.Errorf("look for processes in the nodes' namespaces: %w", err)
	}
	var left []tenant
	for _, pid := range pids {
		ns, err := procfs.NetNS(pid)
		if err != nil {
			continue // ended meanwhile, or somebody else's
		}
		if _, ok := spaces[ns]; ok {
			left = append(left, tenant{pid, ns})
		}
	}
	return left, nil
}

// killIn kills a process if it is still in the namespace. The descriptor pins
// the process, so that a reused pid cannot be hit.
func killIn(t tenant) {
	fd, err := unix.PidfdOpen(t.pid, 0)
	if err != nil {
		return // ended, or a kernel before 5.3: the next look decides
	}
	defer unix.Close(fd)
	if ns, err := procfs.NetNS(t.pid); err == nil && ns == t.namespace {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
