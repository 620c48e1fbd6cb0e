package netns

import "context"

// Vacate ends every process in the given network namespaces (identity as
// /proc/PID/ns/net shows it → what to call it) and returns when none is left. They
// must be namespaces that this program made, and that still exist: the caller holds
// them open, or their numbers could be another's by now.
func Vacate(ctx context.Context, spaces map[string]string) error { return vacate(ctx, spaces) }
