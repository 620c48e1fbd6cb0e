package session

import "github.com/hopbed/hopbed/agent/proto"

// undoStack holds what must be put back, in the order in which it was changed.
type undoStack struct {
	node  string
	items []undo
}

type undo struct {
	what string
	do   func() error
}

// push records how to undo a change; call it before the change is made where
// the change could half happen, else right after.
func (u *undoStack) push(what string, do func() error) {
	u.items = append(u.items, undo{what, do})
}

// revert undoes everything, newest first. One that fails does not keep the
// others from being undone.
func (u *undoStack) revert() proto.Reverted {
	r := proto.Reverted{Undone: []string{}}
	for i := len(u.items) - 1; i >= 0; i-- {
		it := u.items[i]
		if err := it.do(); err != nil {
			e := *proto.AsError(err, proto.CodeSystem)
			if e.What == "" {
				e.What = it.what
			}
			e.Node = u.node
			r.Failed = append(r.Failed, e)
			continue
		}
		r.Undone = append(r.Undone, it.what)
	}
	u.items = nil
	return r
}
