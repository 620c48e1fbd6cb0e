package lab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// protocol is the version of the messages; keeper and client are normally the same
// program, but it may have been replaced meanwhile.
const protocol = 1

// A message is a length of four bytes, big endian, and so much JSON. The first of
// a connection is a request; descriptors come with its length.
const maxMessage = 8 << 20 // an environment and arguments, or a set of 1,000 nodes

// request asks the keeper for one thing. Exactly one field beside Version is set.
type request struct {
	Version int       `json:"v"`
	Status  bool      `json:"status,omitempty"`
	Down    bool      `json:"down,omitempty"`
	Set     *Order    `json:"set,omitempty"`
	Exec    *execSpec `json:"exec,omitempty"`
}

// execSpec is a program to run in a node. Three descriptors come with it: its
// standard input, output and error.
type execSpec struct {
	Node  string   `json:"node"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`
	Umask int      `json:"umask"`
	// Terminal: the standard input is a terminal, which becomes the controlling one.
	Terminal bool `json:"terminal,omitempty"`
}

// control is what a client says while its program runs.
type control struct {
	Signal int `json:"signal"`
}

// answer is a message of the keeper.
type answer struct {
	Version int        `json:"v"`
	Error   *fault     `json:"error,omitempty"`
	Status  *Status    `json:"status,omitempty"`
	Set     *setAnswer `json:"set,omitempty"`
	Down    *Gone      `json:"down,omitempty"`
	Started int        `json:"started,omitempty"` // process id of the program
	Exit    *Exit      `json:"exit,omitempty"`
}

type setAnswer struct {
	Changed []Changed `json:"changed"`
}

// fault carries an error over the wire, with what its type says.
type fault struct {
	Text string `json:"text"`
	Code int    `json:"code,omitempty"` // of exec: the exit status that a shell would give
}

// Exit is how a program in a node ended.
type Exit struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"` // that killed it; 0 = it exited
}

// Gone says what a lab was when it was taken down.
type Gone struct {
	Nodes     int      `json:"nodes"`
	Processes []string `json:"processes,omitempty"` // of the user, that were ended: "ping (4711) on n01"
	Left      string   `json:"left,omitempty"`      // what could not be removed
}

// Status is the state of a lab.
type Status struct {
	Entry
	Log        string       `json:"log"`
	Nodes      []NodeStatus `json:"nodes"`
	Wires      []LinkStatus `json:"wires,omitempty"`
	Radio      []LinkStatus `json:"radio,omitempty"` // links that are not as they came up
	RadioLinks int          `json:"radio_links"`
	Example    string       `json:"example,omitempty"` // a link that there is, as Set takes it
	Routes     bool         `json:"routes"`
	IPv6       bool         `json:"ipv6"`
	Rootless   bool         `json:"rootless"`
	Priority   string       `json:"priority"` // of the emulator
	// Late is the 99th percentile of its lateness since it came up; nil: not known yet.
	Late *vtime.Duration `json:"late_p99_ns,omitempty"`
	// Unnamed is why names of nodes are not known inside, empty if they are.
	Unnamed string `json:"unnamed,omitempty"`
}

// Entry is what a lab's file says of it.
type Entry struct {
	Name       string    `json:"name"`
	Tag        string    `json:"tag"`    // of its journal
	Folder     string    `json:"folder"` // private; the socket is in it
	Experiment string    `json:"experiment"`
	PID        int       `json:"pid"` // of the keeper
	Since      time.Time `json:"since"`
	// Ended is why the lab is no more, once its keeper or guardian has said so.
	Ended string `json:"ended,omitempty"`
	Alive bool   `json:"-"` // its keeper runs
}

// NodeStatus is one node.
type NodeStatus struct {
	Name       string   `json:"name"`
	Addr       string   `json:"addr"`
	Interfaces []string `json:"interfaces"`
	Up         bool     `json:"up"`
	Radio      string   `json:"radio,omitempty"`     // where it differs from the others'
	Processes  []string `json:"processes,omitempty"` // of the user
}

// LinkStatus is one direction of a link.
type LinkStatus struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

func writeMessage(w io.Writer, m any) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func encode(m any) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(b) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes, more than %d: shorten the arguments or the environment", len(b), maxMessage)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), nil
}

func readMessage(r io.Reader, m any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	return readBody(r, head, m)
}

func readBody(r io.Reader, head [4]byte, m any) error {
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("a message of %d bytes, more than %d", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, m)
}
