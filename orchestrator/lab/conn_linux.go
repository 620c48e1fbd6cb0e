package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// socketName is the name of the socket in a lab's folder.
const socketName = "keeper"

// through gives a path to a name in a folder that is short, however long the
// folder's own is: the address of a socket has room for 107 bytes (unix(7)).
func through(folder string, use func(path string) error) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(filepath.Join("/proc/self/fd", fmt.Sprint(dir.Fd()), socketName))
}

// listen makes the socket of a lab, for its owner only.
func listen(folder string) (l *net.UnixListener, err error) {
	err = through(folder, func(path string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false) // the path is short-lived; the folder goes as a whole
		return nil
	})
	if err == nil {
		err = os.Chmod(filepath.Join(folder, socketName), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("socket of the lab: %w", err)
	}
	return l, nil
}

func dial(folder string) (c *net.UnixConn, err error) {
	err = through(folder, func(path string) error {
		c, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	return c, err
}

// checkPeer refuses a process of another user. The kernel says who it is, in this
// process's user namespace.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var opt error
	if err := raw.Control(func(fd uintptr) { cred, opt = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if opt != nil {
		return fmt.Errorf("who is at the other end of the socket: %w", opt)
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("process %d of user %d is not this lab's owner", cred.Pid, cred.Uid)
	}
	return nil
}

// writeRequest sends the first message of a connection with its descriptors.
func writeRequest(c *net.UnixConn, r *request, files []*os.File) error {
	r.Version = protocol
	b, err := encode(r)
	if err != nil {
		return err
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(b[:4], oob, nil); err != nil {
		return err
	}
	_, err = c.Write(b[4:])
	return err
}

// maxFiles is the number of descriptors that a request may bring.
const maxFiles = 3

// readRequest reads the first message of a connection. The caller closes the
// files, whatever the error.
func readRequest(c *net.UnixConn) (*request, []*os.File, error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, nil, err
	}
	files, err := received(oob[:oobn])
	if err != nil {
		return nil, files, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return nil, files, fmt.Errorf("more than %d descriptors", maxFiles)
	}
	if n == 0 {
		return nil, files, io.EOF
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return nil, files, err
	}
	r := &request{}
	if err := readBody(c, head, r); err != nil {
		return nil, files, err
	}
	if r.Version != protocol {
		return nil, files, fmt.Errorf("a request of version %d, and the lab's keeper speaks %d: the program was replaced since the lab came up; hopbed down, and up again", r.Version, protocol)
	}
	return r, files, nil
}

// received takes the descriptors out of a control message. They are closed on exec:
// the net package asks for it.
func received(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	var errs []error
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		errs = append(errs, err)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, errors.Join(errs...)
}
