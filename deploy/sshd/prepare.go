package sshd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Prepare makes everything that a server needs but starts none: it writes the files
// and returns the server's command. It is for callers that run the server in a
// process of their own making. o.Listen must say where the server listens; o.NetNS
// is not looked at.
func Prepare(ctx context.Context, o Options) (argv []string, err error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if !o.Listen.IsValid() || o.Listen.Port() == 0 {
		return nil, fmt.Errorf("sshd: %s is no address with a port to listen on", o.Listen)
	}
	if err := separate(); err != nil {
		return nil, err
	}
	keys, err := hostKeys(ctx, o)
	if err != nil {
		return nil, err
	}
	authorized := filepath.Join(o.Dir, "authorized_keys")
	if err := os.WriteFile(authorized, []byte(strings.Join(append(o.Authorized, ""), "\n")), 0o600); err != nil {
		return nil, err
	}
	conf := filepath.Join(o.Dir, "sshd_config")
	if err := os.WriteFile(conf, []byte(config(o, o.Listen, keys, authorized)), 0o600); err != nil {
		return nil, err
	}
	p, err := program("sshd")
	if err != nil {
		return nil, err
	}
	return []string{p, "-D", "-e", "-f", conf}, nil
}

// separate makes the folder that a server of root's needs.
func separate() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Mkdir(separation, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return &Unavailable{"sshd needs the folder " + separation + ", which cannot be made: " + err.Error(), "make it"}
	}
	return nil
}
