package topology

import "errors"

var errUnwritten = errors.New("topology: being written")
