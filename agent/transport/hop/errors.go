package hop

import "fmt"

// CorruptError is a block whose bytes did not match the hash that its source
// gave it. The block is sent again.
type CorruptError struct {
	Node      NodeID
	Flow      FlowKey
	Block     BlockID
	Want, Got uint64
}

// Error names node, flow, block and both hashes.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("hop: node %d: block %d of flow %d (%d→%d) has the hash %016x, its source announced %016x; it is sent again",
		e.Node, e.Block, e.Flow.Flow, e.Flow.Src, e.Flow.Dst, e.Got, e.Want)
}
