package sshd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options describe a server.
type Options struct {
	// Dir is an existing folder for its files: host keys, configuration,
	// authorized_keys. The caller removes it after Stop.
	Dir string
	// NetNS is the path of the network namespace that the server listens in
	// ("/proc/42/ns/net"); empty is the caller's own.
	NetNS string
	// Listen is where it listens; the zero value is 127.0.0.1 and a free port.
	// Port 0 is a free port of the caller's namespace, and 22 in another one.
	Listen netip.AddrPort
	// HostKeys are the types of the host keys that it makes ("ed25519", "rsa",
	// "ecdsa"), or paths of private keys that exist; empty is ed25519.
	HostKeys []string
	// Authorized are the lines of authorized_keys.
	Authorized []string
	// Config is put before the other lines of sshd_config: the first value of a
	// key is the one that counts. Sessions have Dir as their HOME, unless a SetEnv
	// here says otherwise.
	Config []string
}

// Server is a running sshd.
type Server struct {
	Addr     netip.AddrPort // where it listens
	HostKeys []string       // the files of its public host keys

	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when it has ended and was reaped
}

// Unavailable says why this host cannot run an OpenSSH server.
type Unavailable struct{ Because, Do string }

// Error gives the reason and the remedy.
func (u *Unavailable) Error() string {
	return "an OpenSSH server is unavailable, because " + u.Because + "; " + u.Do
}

// separation is the folder that sshd, started by root, confines its unprivileged
// part to. Its path is compiled in; the service of the distribution makes it, at
// each boot.
const separation = "/run/sshd"

// Available returns an *Unavailable when this host lacks what a server needs, or
// when the current user could not log in to one.
func Available() error {
	if _, err := program("sshd"); err != nil {
		return &Unavailable{"sshd is neither in PATH nor in /usr/sbin", "install openssh-server (its service need not run)"}
	}
	if _, err := program("ssh-keygen"); err != nil {
		return &Unavailable{"ssh-keygen is not in PATH", "install openssh-client"}
	}
	return mayLogIn()
}

func program(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return filepath.Abs(p)
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p, nil
		}
	}
	return "", exec.ErrNotFound
}

// attempts bounds the ports that are tried: a free port may be taken by somebody
// else before sshd binds it.
const attempts = 5

// Start starts a server and returns when it listens. ctx bounds the start, not
// the server's life: Stop ends it. Errors carry what sshd said.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := Available(); err != nil {
		return nil, err
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
	for try := 1; ; try++ {
		addr, err := choose(o)
		if err != nil {
			return nil, err
		}
		conf := filepath.Join(o.Dir, "sshd_config")
		if err := os.WriteFile(conf, []byte(config(o, addr, keys, authorized)), 0o600); err != nil {
			return nil, err
		}
		s, err := launch(ctx, o, conf, addr)
		if err == nil {
			for _, k := range keys {
				s.HostKeys = append(s.HostKeys, k+".pub")
			}
			return s, nil
		}
		if o.Listen.Port() != 0 || try == attempts || !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

// choose picks the address to listen on.
func choose(o Options) (netip.AddrPort, error) {
	addr, port := o.Listen.Addr(), o.Listen.Port()
	if !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	switch {
	case port != 0:
	case o.NetNS != "":
		port = 22 // nobody else listens there
	default:
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("a free port on %s: %w", addr, err)
		}
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		l.Close()
	}
	return netip.AddrPortFrom(addr, port), nil
}

func hostKeys(ctx context.Context, o Options) ([]string, error) {
	types := o.HostKeys
	if len(types) == 0 {
		types = []string{"ed25519"}
	}
	var files []string
	for _, t := range types {
		if filepath.IsAbs(t) {
			files = append(files, t)
			continue
		}
		f := filepath.Join(o.Dir, "host_"+t)
		if err := KeyGen(ctx, f, t, ""); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// KeyGen makes a key pair by ssh-keygen, FILE and FILE.pub, unless it is there.
// RSA keys have 2048 bits.
func KeyGen(ctx context.Context, file, keyType, passphrase string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	p, err := program("ssh-keygen")
	if err != nil {
		return &Unavailable{"ssh-keygen is not in PATH", "install openssh-client"}
	}
	args := []string{"-q", "-t", keyType, "-N", passphrase, "-C", "hopbed", "-f", file}
	if keyType == "rsa" {
		args = append(args, "-b", "2048")
	}
	if out, err := exec.CommandContext(ctx, p, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ssh-keygen -t %s: %w: %s", keyType, err, bytes.TrimSpace(out))
	}
	return nil
}

// quoted writes a path for sshd_config, where a blank would end it.
func quoted(path string) string { return `"` + path + `"` }

func config(o Options, addr netip.AddrPort, keys []string, authorized string) string {
	lines := environment(o)
	for _, k := range keys {
		lines = append(lines, "HostKey "+quoted(k))
	}
	lines = append(lines,
		"ListenAddress "+addr.String(),
		"AuthorizedKeysFile "+quoted(authorized),
		// The folder may lie below one that others may write to (/tmp).
		"StrictModes no",
		"UsePAM no",
		"PermitRootLogin prohibit-password",
		"PubkeyAuthentication yes",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"PidFile none",
		"UseDNS no",
		"PrintMotd no",
		"PrintLastLog no",
		"X11Forwarding no",
		"LogLevel VERBOSE",
		// One client opens many connections at once: its nodes.
		"MaxStartups 200",
		"Subsystem sftp internal-sftp",
	)
	return strings.Join(lines, "\n") + "\n"
}

// environment is o.Config with the variables that sessions get besides: sshd takes
// the first SetEnv line only. Programs must not depend on what somebody has in his
// home: bash even reads ~/.bashrc for commands that come from sshd, unless it believes
// to be inside of another shell.
func environment(o Options) []string {
	var lines, set []string
	for _, l := range o.Config {
		if f := strings.Fields(l); len(f) > 1 && strings.EqualFold(f[0], "setenv") {
			set = append(set, strings.TrimSpace(l[strings.Index(l, f[0])+len(f[0]):]))
		} else {
			lines = append(lines, l)
		}
	}
	given := " " + strings.Join(set, " ")
	for _, v := range []string{"HOME=" + o.Dir, "SHLVL=1"} {
		name, _, _ := strings.Cut(v, "=")
		if !strings.Contains(given, " "+name+"=") && !strings.Contains(given, ` "`+name+"=") {
			set = append(set, quoted(v))
		}
	}
	return append([]string{"SetEnv " + strings.Join(set, " ")}, lines...)
}

func launch(ctx context.Context, o Options, conf string, addr netip.AddrPort) (*Server, error) {
	p, err := program("sshd")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: addr, log: &logBuffer{}, done: make(chan struct{})}
	s.cmd = exec.Command(p, "-D", "-e", "-f", conf)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = w
	if err := inNamespace(o.NetNS, s.cmd.Start); err != nil {
		r.Close()
		w.Close()
		return nil, fmt.Errorf("start %s: %w", p, err)
	}
	w.Close()
	listening := make(chan struct{})
	go s.read(r, "listening on "+addr.Addr().String()+" port "+strconv.Itoa(int(addr.Port())), listening)
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	select {
	case <-listening:
		return s, nil
	case <-s.done:
		s.log.settle()
		return nil, fmt.Errorf("sshd on %s ended at once: %s", addr, s.Log())
	case <-ctx.Done():
		s.Stop()
		return nil, fmt.Errorf("sshd on %s does not listen: %w: %s", addr, ctx.Err(), s.Log())
	}
}

// read keeps the log and closes listening at the line that says so.
func (s *Server) read(r io.ReadCloser, mark string, listening chan struct{}) {
	defer r.Close()
	defer s.log.end()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		s.log.add(line)
		if listening != nil && strings.Contains(line, mark) {
			close(listening)
			listening = nil
		}
		if err != nil {
			return
		}
	}
}

// PID is the process id of the server that accepts connections.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the last 64 KiB of what the server said.
func (s *Server) Log() string { return s.log.String() }

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop kills the server and everything that it started, sessions included, and
// returns when the server is reaped. It may be called twice.
func (s *Server) Stop() {
	select {
	case <-s.done:
		return
	default:
	}
	killTree(s.PID())
	s.cmd.Process.Kill()
	<-s.done
}

// logBuffer keeps the end of a log.
type logBuffer struct {
	mu    sync.Mutex
	text  []byte
	ended chan struct{}
}

const logLimit = 64 << 10

func (l *logBuffer) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, s...)
	if n := len(l.text) - logLimit; n > 0 {
		l.text = append(l.text[:0], l.text[n:]...)
	}
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func (l *logBuffer) finished() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = make(chan struct{})
	}
	return l.ended
}

func (l *logBuffer) end() { close(l.finished()) }

// settle waits until the last words are there; sessions may keep the pipe open.
func (l *logBuffer) settle() {
	select {
	case <-l.finished():
	case <-time.After(time.Second):
	}
}
