package hopfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop/hopnet"
)

// world is a node that sends and one that receives into a folder.
type world struct {
	t    *testing.T
	a, b *hopnet.Node
	dir  string
	done chan Received
}

func ctx(t testing.TB) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

func newWorld(t *testing.T, r Receiver) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), done: make(chan Received, 100)}
	var err error
	if w.b, err = hopnet.Open(hopnet.Config{ID: 2, Listen: "127.0.0.1:0", Open: true}); err != nil {
		t.Fatal(err)
	}
	w.a = w.sender(1)
	l, err := w.b.Listen(Service)
	if err != nil {
		t.Fatal(err)
	}
	if r.Out == nil {
		r.Dir = w.dir
	}
	r.Done = func(x Received) { w.done <- x }
	c, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- r.Serve(c, l, 0) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve ended with %v", err)
		}
		w.b.Close()
	})
	return w
}

func (w *world) sender(id hopnet.NodeID) *hopnet.Node {
	n, err := hopnet.Open(hopnet.Config{ID: id, Listen: "127.0.0.1:0", Peers: []hopnet.Peer{{ID: 2, Addr: w.b.LocalAddr().String()}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { n.Close() })
	return n
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func (w *world) send(name string, data []byte) (Sent, error) {
	return Send(ctx(w.t), w.a, 2, Service, File{Name: name, Size: int64(len(data)), Time: time.Unix(1e9, 0), Data: bytes.NewReader(data)}, nil)
}

// parts are the files in the folder that begin with a dot.
func (w *world) parts() (names []string) {
	entries, _ := os.ReadDir(w.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestFilesArrive(t *testing.T) {
	w := newWorld(t, Receiver{})
	for i, size := range []int{0, 1, 1000, chunkSize, 3_000_001} {
		name := "file " + strings.Repeat("x", i) + ".bin"
		data := random(size)
		var told int64
		sent, err := Send(ctx(t), w.a, 2, Service, File{Name: name, Size: int64(size), Time: time.Unix(1e9, 0), Data: bytes.NewReader(data)}, func(n int64) { told = n })
		if err != nil || sent.Name != name || sent.Bytes != int64(size) || sent.SHA256 != sha256.Sum256(data) || told != int64(size) {
			t.Fatalf("%d bytes: %+v, told of %d, %v", size, sent, told, err)
		}
		got, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d are there, %v", size, len(got), err)
		}
		if i, err := os.Stat(filepath.Join(w.dir, name)); err != nil || i.ModTime().Unix() != 1e9 {
			t.Errorf("changed at %v", i.ModTime())
		}
		if x := <-w.done; x.Err != nil || x.From != 1 || x.Bytes != int64(size) {
			t.Errorf("the receiver: %+v", x)
		}
	}
	// What has no size and cannot be read again.
	sent, err := Send(ctx(t), w.a, 2, Service, File{Name: "stream", Size: -1, Data: struct{ io.Reader }{bytes.NewReader(random(700_000))}}, nil)
	if err != nil || sent.Bytes != 700_000 {
		t.Errorf("%+v, %v", sent, err)
	}
	if left := w.parts(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Nothing is overwritten, nothing leaves the folder, and what is refused says why.
func TestRefusals(t *testing.T) {
	w := newWorld(t, Receiver{MaxSize: 1000})
	if err := os.WriteFile(filepath.Join(w.dir, "there"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(w.dir, "link")); err != nil {
		t.Log(err)
	}
	for name, want := range map[string]string{
		"there": "nothing is overwritten", "link": "nothing is overwritten", "": "0 bytes", "../up": "hidden file", "a/b": "not that of a file", "/etc/x": "not that of a file",
		".bashrc": "hidden", "..": "hidden", "a\\b": "not that of a file", "a\nb": "not that of a file", strings.Repeat("n", 300): "1 to 200",
	} {
		_, err := w.send(name, []byte("x"))
		if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if _, err := w.send("large", random(1001)); err == nil || !strings.Contains(err.Error(), "files of up to 1000 are taken") {
		t.Errorf("too large: %v", err)
	}
	// One that hides its size, and one that gives less or more than it said.
	for _, f := range []File{{Name: "endless", Size: -1, Data: bytes.NewReader(random(5000))}, {Name: "short", Size: 500, Data: bytes.NewReader(random(100))}, {Name: "long", Size: 100, Data: bytes.NewReader(random(500))}} {
		if _, err := Send(ctx(t), w.a, 2, Service, f, nil); err == nil {
			t.Errorf("%s was taken", f.Name)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(w.dir, "there")); string(got) != "mine" {
		t.Errorf("it is %q now", got)
	}
	entries, _ := os.ReadDir(w.dir)
	for _, e := range entries {
		if n := e.Name(); n != "there" && n != "link" && !strings.HasPrefix(n, partPrefix) {
			t.Errorf("%q is there", n)
		}
	}
}

// A transfer that was broken off goes on where it stopped, if the file is the
// same, and from the beginning if its beginning is another.
func TestResume(t *testing.T) {
	for _, same := range []bool{true, false} {
		w := newWorld(t, Receiver{})
		data := random(6 << 20)
		c, cancel := context.WithCancel(ctx(t))
		_, err := Send(c, w.a, 2, Service, File{Name: "f", Size: int64(len(data)), Time: time.Unix(1, 0), Data: &stalls{data: data, at: 4 << 20, do: func() {
			for { // what was read until here is there
				if p := w.parts(); len(p) == 1 {
					if i, err := os.Stat(filepath.Join(w.dir, p[0])); err == nil && i.Size() >= 2<<20 {
						break
					}
				}
				time.Sleep(time.Millisecond)
			}
			cancel()
		}}}, nil)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("broken off: %v", err)
		}
		if x := <-w.done; x.Err == nil || x.Bytes == 0 {
			t.Fatalf("the receiver: %+v", x)
		}
		if !same {
			data[77]++
		}
		sent, err := Send(ctx(t), w.a, 2, Service, File{Name: "f", Size: int64(len(data)), Time: time.Unix(1, 0), Data: bytes.NewReader(data)}, nil)
		if err != nil || same && sent.Resume < 2<<20 || !same && sent.Resume != 0 {
			t.Errorf("the same %v: resumed at %d, %v", same, sent.Resume, err)
		}
		if got, err := os.ReadFile(filepath.Join(w.dir, "f")); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the same %v: %d bytes, %v", same, len(got), err)
		}
		if left := w.parts(); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// stalls does something when it has been read up to a place.
type stalls struct {
	data []byte
	pos  int
	at   int
	do   func()
}

func (s *stalls) Read(p []byte) (int, error) {
	if s.pos >= s.at && s.do != nil {
		s.do()
		s.do = nil
	}
	if s.pos == len(s.data) {
		return 0, io.EOF
	}
	n := copy(p, s.data[s.pos:])
	s.pos += n
	return n, nil
}

// A sender that lies about the hash, or sends nonsense, leaves nothing behind.
func TestLies(t *testing.T) {
	w := newWorld(t, Receiver{})
	for name, say := range map[string]func(c *hopnet.Conn){
		"hash": func(c *hopnet.Conn) {
			writeMessage(c, offer{Version: 1, Name: "f", Size: 4})
			readMessage(c, &reply{})
			writeMessage(c, begin{})
			c.Write(append([]byte{0, 0, 0, 4, 'a', 'b', 'c', 'd', 0, 0, 0, 0}, make([]byte, 32)...))
		},
		"offset": func(c *hopnet.Conn) {
			writeMessage(c, offer{Version: 1, Name: "f", Size: 4})
			writeMessage(c, begin{2})
		},
		"chunk": func(c *hopnet.Conn) {
			writeMessage(c, offer{Version: 1, Name: "f", Size: 4})
			writeMessage(c, begin{})
			c.Write([]byte{255, 255, 255, 255})
		},
		"message": func(c *hopnet.Conn) { c.Write([]byte{255, 255, 255, 255}) },
		"json":    func(c *hopnet.Conn) { c.Write([]byte{0, 0, 0, 2, '{', '['}) },
		"version": func(c *hopnet.Conn) { writeMessage(c, offer{Version: 9, Name: "f"}) },
		"nothing": func(c *hopnet.Conn) {},
	} {
		c, err := w.a.Dial(ctx(t), 2, Service)
		if err != nil {
			t.Fatal(err)
		}
		say(c)
		c.CloseWrite()
		if x := <-w.done; x.Err == nil {
			t.Errorf("%s: taken: %+v", name, x)
		}
		c.Close()
	}
	entries, _ := fs.ReadDir(os.DirFS(w.dir), ".")
	for _, e := range entries {
		t.Errorf("%q is there", e.Name())
	}
}

// A receiver of one file ends when it has it, and gives it to a writer.
func TestOneToAWriter(t *testing.T) {
	b, err := hopnet.Open(hopnet.Config{ID: 2, Listen: "127.0.0.1:0", Open: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w := &world{t: t, b: b}
	w.a = w.sender(1)
	l, _ := b.Listen(Service)
	var out bytes.Buffer
	over := make(chan error)
	go func() { over <- (&Receiver{Out: &out}).Serve(ctx(t), l, 1) }()
	data := random(1 << 20)
	if _, err := w.send("f", data); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil || !bytes.Equal(out.Bytes(), data) {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// A sender that was killed says no more. Whoever sends the same file again goes on
// where it stopped; while it is being sent, the second one is refused.
func TestKilledSender(t *testing.T) {
	w := newWorld(t, Receiver{silence: 300 * time.Millisecond})
	data := random(3 << 20)
	c, err := w.a.Dial(ctx(t), 2, Service)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var r reply
	half := make([]byte, 4+1<<20)
	half[1] = 0x10 // a chunk of 1 MiB
	copy(half[4:], data)
	if err := errors.Join(writeMessage(c, offer{Version: 1, Name: "f", Size: int64(len(data)), Time: 1e9}), readMessage(c, &r), writeMessage(c, begin{})); err != nil || r.Error != "" {
		t.Fatal(err, r.Error)
	}
	alive, stop := make(chan struct{}), make(chan struct{})
	go func() { // a slow sender: a byte now and then
		defer close(alive)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_, _ = c.Write(half[:1])
				half = half[1:]
			}
		}
	}()
	if _, err := w.send("f", data); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("beside another transfer: %v", err)
	}
	<-w.done
	close(stop)
	<-alive
	if _, err := c.Write(half); err != nil { // and no word more
		t.Fatal(err)
	}
	for have := int64(0); have < 1<<20; time.Sleep(time.Millisecond) {
		if i, err := os.Stat(filepath.Join(w.dir, w.parts()[0])); err == nil {
			have = i.Size()
		}
	}
	sent, err := w.send("f", data)
	if err != nil || sent.Resume != 1<<20 {
		t.Errorf("resumed at %d: %v", sent.Resume, err)
	}
	if x := <-w.done; x.Err == nil || !strings.Contains(x.Err.Error(), "another transfer of it") {
		t.Errorf("the first: %+v", x)
	}
	if got, err := os.ReadFile(filepath.Join(w.dir, "f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if left := w.parts(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// What goes to a writer cannot be taken back: no file follows a part of one.
func TestBrokenOffToAWriter(t *testing.T) {
	b, err := hopnet.Open(hopnet.Config{ID: 2, Listen: "127.0.0.1:0", Open: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w := &world{t: t, b: b}
	w.a = w.sender(1)
	l, _ := b.Listen(Service)
	var out bytes.Buffer
	over := make(chan error)
	go func() { over <- (&Receiver{Out: &out}).Serve(ctx(t), l, 1) }()
	if _, err := w.send("../f", random(5)); err == nil { // nothing was written: it waits for another
		t.Error("../f was taken")
	}
	if _, err := Send(ctx(t), w.a, 2, Service, File{Name: "f", Size: 5, Data: bytes.NewReader(random(4))}, nil); err == nil {
		t.Error("a part was taken for the whole")
	}
	if err := <-over; err == nil || !strings.Contains(err.Error(), "all there will be") {
		t.Errorf("%d bytes of 5 were written, and it ends with %v", out.Len(), err)
	}
}
