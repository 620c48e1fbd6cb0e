package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/internal/testenv"
)

// Browser is a running Chromium, spoken to by the DevTools protocol over a
// pipe (messages end in a zero byte).
type Browser struct {
	t   testing.TB
	in  *os.File
	mu  sync.Mutex
	id  int
	ans map[int]chan message
	ev  map[string][]func(json.RawMessage) // by session
	err error
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    any             `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// patience is how long an answer may take on a machine that is busy with other
// tests.
const patience = 2 * time.Minute

// Start starts Chromium and ends it with the test. It skips the test where
// there is none.
func Start(t testing.TB) *Browser {
	t.Helper()
	testenv.Need(t, testenv.Program("chromium"))
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toRead.Close()
	fromWrite.Close()
	b := &Browser{t: t, in: toWrite, ans: map[int]chan message{}, ev: map[string][]func(json.RawMessage){}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(bufio.NewReaderSize(fromRead, 1<<20))
	}()
	t.Cleanup(func() {
		toWrite.Close() // Chromium ends with its pipe
		gone := make(chan error, 1)
		go func() { gone <- cmd.Wait() }()
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-gone
		}
		fromRead.Close()
		<-done
	})
	return b
}

func (b *Browser) read(r *bufio.Reader) {
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			b.fail(err)
			return
		}
		var m message
		var p struct {
			Params json.RawMessage `json:"params"`
		}
		raw = raw[:len(raw)-1]
		if err := errors.Join(json.Unmarshal(raw, &m), json.Unmarshal(raw, &p)); err != nil {
			b.fail(err)
			return
		}
		b.mu.Lock()
		if m.ID != 0 {
			if c := b.ans[m.ID]; c != nil {
				delete(b.ans, m.ID)
				c <- m
			}
		} else {
			for _, f := range b.ev[m.SessionID+" "+m.Method] {
				f(p.Params)
			}
		}
		b.mu.Unlock()
	}
}

func (b *Browser) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	for id, c := range b.ans {
		delete(b.ans, id)
		close(c)
	}
}

func (b *Browser) call(session, method string, params, result any) {
	b.t.Helper()
	b.mu.Lock()
	if b.err != nil {
		b.mu.Unlock()
		b.t.Fatalf("chromium ended: %v", b.err)
	}
	b.id++
	m := message{ID: b.id, Method: method, Params: params, SessionID: session}
	c := make(chan message, 1)
	b.ans[m.ID] = c
	b.mu.Unlock()
	raw, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(raw, 0)); err != nil {
		b.t.Fatalf("chromium: %v", err)
	}
	select {
	case m, ok := <-c:
		if !ok {
			b.t.Fatalf("chromium ended during %s", method)
		}
		if m.Error != nil {
			b.t.Fatalf("chromium: %s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("chromium: %s: %v", method, err)
			}
		}
	case <-time.After(patience):
		b.t.Fatalf("chromium did not answer %s within %v", method, patience)
	}
}

func (b *Browser) on(session, method string, f func(json.RawMessage)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := session + " " + method
	b.ev[k] = append(b.ev[k], f)
}

// Page is a loaded page.
type Page struct {
	b       *Browser
	session string
	// requests are the addresses that the page asked for, itself included.
	requests []string
	// complaints are console messages, exceptions and the browser's log.
	complaints []string
}

// Options of a page.
type Options struct {
	Width, Height int
	Mobile        bool
	Dark          bool
}

// Open loads a page and waits until it is complete.
func (b *Browser) Open(url string, o Options) *Page {
	b.t.Helper()
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var s struct {
		SessionID string `json:"sessionId"`
	}
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &s)
	p := &Page{b: b, session: s.SessionID}
	loaded := make(chan struct{}, 1)
	b.on(p.session, "Page.loadEventFired", func(json.RawMessage) {
		select {
		case loaded <- struct{}{}:
		default:
		}
	})
	b.on(p.session, "Network.requestWillBeSent", func(raw json.RawMessage) {
		var e struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(raw, &e) == nil {
			p.requests = append(p.requests, e.Request.URL)
		}
	})
	for _, m := range []string{"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"} {
		b.on(p.session, m, func(raw json.RawMessage) { p.complaints = append(p.complaints, m+": "+string(raw)) })
	}
	for _, m := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"} {
		b.call(p.session, m, nil, nil)
	}
	b.call(p.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": o.Width, "height": o.Height, "deviceScaleFactor": 1, "mobile": o.Mobile}, nil)
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	b.call(p.session, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.call(p.session, "Page.navigate", map[string]any{"url": url}, nil)
	select {
	case <-loaded:
	case <-time.After(patience):
		b.t.Fatalf("%s was not loaded within %v", url, patience)
	}
	return p
}

// Observed returns what the page asked for and complained about so far.
func (p *Page) Observed() (requests, complaints []string) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return append([]string(nil), p.requests...), append([]string(nil), p.complaints...)
}

// Eval evaluates an expression in the page and decodes its value.
func (p *Page) Eval(expression string, result any) {
	p.b.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		p.b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, result); err != nil {
		p.b.t.Fatalf("%s: %v", expression, err)
	}
}

// PDF prints the page.
func (p *Page) PDF() []byte {
	p.b.t.Helper()
	var r struct {
		Data string `json:"data"`
	}
	p.b.call(p.session, "Page.printToPDF", map[string]any{"printBackground": true}, &r)
	return p.decode(r.Data)
}

// Screenshot returns the whole page as PNG.
func (p *Page) Screenshot() []byte {
	p.b.t.Helper()
	var r struct {
		Data string `json:"data"`
	}
	p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r)
	return p.decode(r.Data)
}

func (p *Page) decode(s string) []byte {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		p.b.t.Fatal(fmt.Errorf("chromium: %w", err))
	}
	return raw
}
