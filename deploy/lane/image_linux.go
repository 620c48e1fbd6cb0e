package lane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// An archive is an initial file system in the format "newc" of cpio(5), which
// the kernel unpacks (Documentation/driver-api/early-userspace/buffer-format).
type archive struct {
	w     io.Writer
	inode int
	n     int64
	err   error
}

const (
	modeDir     = 0o040755
	modeProgram = 0o100755
	modeFile    = 0o100644
)

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
	a.n += int64(len(b))
}

func (a *archive) pad() { a.write(make([]byte, (4-a.n%4)%4)) }

// add appends an entry; data of a folder is empty.
func (a *archive) add(name string, mode int, data []byte) {
	a.inode++
	a.write(fmt.Appendf(nil, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0))
	a.write(append([]byte(name), 0))
	a.pad()
	a.write(data)
	a.pad()
}

func (a *archive) close() error {
	a.inode = -1 // by convention 0
	a.add("TRAILER!!!", 0, nil)
	return a.err
}

// folders of the guest: mount points, and what programs expect.
var folders = []string{"dev", "proc", "sys", "tmp", "run", "root", "etc", "modules", "share", "lower", "rw", "new"}

// pack writes the guest's initial file system to a file.
func pack(file, first, program string, o Orders, modules []module) error {
	var buf bytes.Buffer
	a := &archive{w: &buf}
	for _, d := range folders {
		a.add(d, modeDir, nil)
	}
	put := func(name string, mode int, from string) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.add(name, mode, data)
		return nil
	}
	if err := put("init", modeProgram, first); err != nil {
		return err
	}
	if program != "" {
		if err := put(ProgramPath[1:], modeProgram, program); err != nil {
			return err
		}
	}
	for _, m := range modules {
		name := path.Join("modules", filepath.Base(m.file))
		if err := put(name, modeFile, m.file); err != nil {
			return err
		}
		o.Modules = append(o.Modules, Module{File: "/" + name, Params: m.params})
	}
	orders, err := json.Marshal(o)
	if err != nil {
		return err
	}
	a.add(OrdersPath[1:], modeFile, orders)
	if err := a.close(); err != nil {
		return err
	}
	return os.WriteFile(file, buf.Bytes(), 0o644)
}
