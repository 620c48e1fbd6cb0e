package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// Client speaks to the keeper of one lab.
type Client struct {
	place *Place
	Entry
}

// Ended says that a lab is no more although nobody took it down.
type Ended struct{ Entry }

// Error says why, and what to do.
func (e *Ended) Error() string {
	why := e.Entry.Ended
	if why == "" {
		why = "its keeper was killed, and with it everything ended; hopbed clean looks for leftovers"
	}
	return fmt.Sprintf("the lab %s (of %s, since %s) is no more: %s; hopbed up brings it up again", e.Name, e.Experiment, e.Since.Local().Format(time.DateTime), why)
}

// Select finds the lab that is meant: the one of the name, or, without a name, the
// only one that stands. A lab that ended by itself is told once, as an *Ended.
func (p *Place) Select(name string) (*Client, error) {
	all, err := p.List()
	if err != nil {
		return nil, err
	}
	var alive []Entry
	var dead []Entry
	var names []string
	for _, e := range all {
		switch {
		case name != "" && e.Name != name:
			names = append(names, e.Name)
		case e.Alive:
			alive = append(alive, e)
		default:
			dead = append(dead, e)
		}
	}
	switch {
	case len(alive) == 1:
		return &Client{p, alive[0]}, nil
	case len(alive) > 1:
		for _, e := range alive {
			names = append(names, e.Name)
		}
		return nil, fmt.Errorf("%d labs stand (%s): say which with --lab", len(alive), strings.Join(names, ", "))
	case len(dead) > 0:
		e := &Ended{dead[0]}
		return nil, errors.Join(e, p.Forget(dead[0].Name))
	case name != "" && len(names) > 0:
		return nil, fmt.Errorf("there is no lab %q: there is %s", name, strings.Join(names, ", "))
	case name != "":
		return nil, fmt.Errorf("there is no lab %q: hopbed up FILE --name %s brings one up", name, name)
	}
	return nil, errors.New("no lab stands: hopbed up FILE brings one up")
}

// refused is what the keeper answered, for an error that is not its client's.
type refused struct{ fault }

func (r *refused) Error() string { return r.Text }

func (c *Client) open() (*net.UnixConn, error) {
	conn, err := dial(c.Folder)
	if err != nil {
		return nil, fmt.Errorf("the keeper of the lab %s (pid %d): %w (its log is %s)", c.Name, c.PID, err, c.place.Log(c.Name))
	}
	if err := checkPeer(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("the keeper of the lab %s: %w", c.Name, err)
	}
	return conn, nil
}

func (c *Client) ask(r *request, files []*os.File) (*net.UnixConn, *answer, error) {
	conn, err := c.open()
	if err != nil {
		return nil, nil, err
	}
	if err := writeRequest(conn, r, files); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("the keeper of the lab %s: %w", c.Name, err)
	}
	a, err := c.answer(conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, a, nil
}

func (c *Client) answer(r io.Reader) (*answer, error) {
	a := &answer{}
	if err := readMessage(r, a); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("the lab %s went down meanwhile (its log is %s)", c.Name, c.place.Log(c.Name))
		}
		return nil, fmt.Errorf("the keeper of the lab %s: %w", c.Name, err)
	}
	if a.Error != nil {
		return nil, &refused{*a.Error}
	}
	return a, nil
}

// Status asks how the lab is.
func (c *Client) Status() (*Status, error) {
	conn, a, err := c.ask(&request{Status: true}, nil)
	if err != nil {
		return nil, err
	}
	conn.Close()
	if a.Status == nil {
		return nil, fmt.Errorf("the keeper of the lab %s did not say how it is", c.Name)
	}
	a.Status.Alive = true
	return a.Status, nil
}

// Set changes links, nodes and radios: all of the order, or with an error nothing.
func (c *Client) Set(o Order) ([]Changed, error) {
	conn, a, err := c.ask(&request{Set: &o}, nil)
	if err != nil {
		return nil, err
	}
	conn.Close()
	if a.Set == nil {
		return nil, fmt.Errorf("the keeper of the lab %s did not say what it has set", c.Name)
	}
	return a.Set.Changed, nil
}

// downWithin bounds the wait for a keeper that takes its lab down.
const downWithin = 60 * time.Second

// Down takes the lab down and returns when everything of it is gone.
func (c *Client) Down() (*Gone, error) {
	conn, err := c.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(downWithin))
	if err := writeRequest(conn, &request{Down: true}, nil); err != nil {
		return nil, fmt.Errorf("the keeper of the lab %s: %w", c.Name, err)
	}
	a, err := c.answer(conn)
	if err != nil {
		return nil, err
	}
	if a.Down == nil {
		return nil, fmt.Errorf("the keeper of the lab %s did not say what it has removed", c.Name)
	}
	// Its name is free again before the next command wants it.
	for end := time.Now().Add(downWithin); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		free, err := c.place.free(c.Name, c.Tag)
		if err != nil || free {
			return a.Down, err
		}
	}
	return a.Down, fmt.Errorf("the keeper of the lab %s (pid %d) has removed everything, but does not end", c.Name, c.PID)
}

// free tells whether the lab of a tag no longer has the name.
func (p *Place) free(name, tag string) (bool, error) {
	all, err := p.List()
	if err != nil {
		return false, err
	}
	for _, e := range all {
		if e.Name == name && (e.Tag == tag || e.Tag == "") {
			return false, nil
		}
	}
	return true, nil
}
