package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// auth offers the keys of one host, one after the other, and notes what became of
// them.
type auth struct {
	d    *dialer
	hop  *hop
	ctx  context.Context
	busy func() func() // stops the hop's clock, and lets it go on

	socket  net.Conn // to the agent
	offers  []offer
	ready   bool
	next    int
	asked   bool     // somebody was waited for
	tried   []string // keys that were offered
	notes   []string // why keys were not
	methods []string // what the server accepts
	broken  error    // why nothing can be offered at all
}

// offer is a key to try.
type offer struct {
	label  string
	signer ssh.Signer
	file   *keyFile // to decrypt first, when signer is nil
}

func (a *auth) close() {
	if a.socket != nil {
		a.socket.Close()
	}
}

// callback chooses the next method. (nil, nil) ends the attempt.
func (a *auth) callback(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.methods = c.AllowedMethods
	if !slices.Contains(c.AllowedMethods, "publickey") {
		return nil, nil
	}
	if !a.ready {
		a.ready = true
		if err := a.prepare(); err != nil {
			a.broken = err
			return nil, err
		}
	}
	for a.next < len(a.offers) {
		o := a.offers[a.next]
		a.next++
		if o.signer == nil { // the public part of an encrypted key is not known
			s, err := a.unlock(o.file)
			if err != nil {
				a.notes = append(a.notes, err.Error())
				continue
			}
			if o.signer, err = a.limit(s); err != nil {
				a.notes = append(a.notes, o.label+": "+err.Error())
				continue
			}
		}
		a.tried = append(a.tried, o.label+" ("+describe(o.signer.PublicKey())+")")
		return ssh.PublicKeys(o.signer), nil
	}
	return nil, a.ctx.Err()
}

func (a *auth) unlock(f *keyFile) (ssh.Signer, error) {
	a.asked = true
	s, err := a.d.keys.unlock(a.ctx, f, a.busy, a.hop.conf.BatchMode)
	if err != nil && !slices.Contains(a.notes, err.Error()) {
		a.notes = append(a.notes, err.Error())
	}
	return s, err
}

// prepare lists the keys in the order in which ssh offers them: those of the agent
// that are configured, the agent's others, those that are in files only. Keys that
// the inventory names come first, in its order.
func (a *auth) prepare() error {
	if !a.hop.conf.PublicKey {
		a.notes = append(a.notes, "PubkeyAuthentication is switched off in ssh_config")
		return nil
	}
	held := a.agentKeys()
	var files []*keyFile
	for _, id := range a.hop.conf.Identities {
		f := a.d.keys.file(id.File)
		switch {
		case f.err == nil:
			files = append(files, f)
		case f.absent && id.Default:
		case a.hop.must:
			return a.hop.fail(Identity, f.err.Error(), "correct identity in the inventory", f.err)
		default:
			a.notes = append(a.notes, f.err.Error())
		}
	}
	var configured, others []offer
	fromAgent := map[*keyFile]offer{}
	for _, o := range held {
		i := slices.IndexFunc(files, func(f *keyFile) bool { return f.public != nil && equal(f.public, o.signer.PublicKey()) })
		switch {
		case i >= 0:
			o.label = files[i].path + ", from the agent"
			fromAgent[files[i]] = o
			configured = append(configured, o)
		case !a.hop.conf.IdentitiesOnly:
			others = append(others, o)
		}
	}
	var own []offer
	for _, f := range files {
		o, inAgent := fromAgent[f]
		if !inAgent {
			o = a.fileOffer(f)
		}
		if f.cert != nil && (o.signer != nil) {
			if s, err := ssh.NewCertSigner(f.cert, o.signer); err == nil {
				own = append(own, offer{label: f.path + "-cert.pub", signer: s})
			}
		}
		if !inAgent || a.hop.must {
			own = append(own, o)
		}
	}
	if a.hop.must {
		a.offers = append(own, others...)
	} else {
		a.offers = slices.Concat(configured, others, own)
	}
	return a.limitAll()
}

func (a *auth) fileOffer(f *keyFile) offer {
	o := offer{label: f.path, file: f}
	if f.public != nil {
		o.signer = &lazySigner{f.public, func() (ssh.Signer, error) { return a.unlock(f) }}
	}
	return o
}

// limitAll applies PubkeyAcceptedAlgorithms.
func (a *auth) limitAll() error {
	var out []offer
	for _, o := range a.offers {
		if o.signer != nil {
			s, err := a.limit(o.signer)
			if err != nil {
				a.notes = append(a.notes, o.label+": "+err.Error())
				continue
			}
			o.signer = s
		}
		out = append(out, o)
	}
	a.offers = out
	return nil
}

func (a *auth) limit(s ssh.Signer) (ssh.Signer, error) {
	list := a.hop.conf.PubkeyAlgorithms
	if list == "" {
		return s, nil
	}
	allowed, err := algorithms("PubkeyAcceptedAlgorithms", list, ssh.SupportedAlgorithms().PublicKeyAuths, ssh.InsecureAlgorithms().PublicKeyAuths)
	if err != nil {
		return nil, err
	}
	kind := s.PublicKey().Type()
	mine := slices.DeleteFunc(slices.Clone(allowed), func(x string) bool { return keyType(x) != kind })
	if len(mine) == 0 {
		return nil, fmt.Errorf("PubkeyAcceptedAlgorithms leaves out keys of type %s", kind)
	}
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok || kind != ssh.KeyAlgoRSA {
		return s, nil
	}
	return ssh.NewSignerWithAlgorithms(as, mine)
}

func (a *auth) agentKeys() []offer {
	path := a.hop.conf.Agent
	if path == "" {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(a.ctx, "unix", path)
	if err != nil {
		a.notes = append(a.notes, "the agent cannot be reached: "+err.Error())
		return nil
	}
	a.socket = conn
	// An agent that does not answer must not outlast the attempt, at whose end the
	// context ends.
	context.AfterFunc(a.ctx, func() { conn.Close() })
	client := agent.NewClient(conn)
	keys, err := client.List()
	var signers []ssh.Signer
	if err == nil {
		signers, err = client.Signers()
	}
	if err != nil {
		a.notes = append(a.notes, "the agent at "+path+": "+oneLine(err.Error()))
		return nil
	}
	var out []offer
	for i, s := range signers {
		label := "a key of the agent"
		if i < len(keys) && keys[i].Comment != "" {
			label = "the agent's " + oneLine(keys[i].Comment)
		}
		out = append(out, offer{label: label, signer: s})
	}
	return out
}

// refused is why the server did not let us in.
func (a *auth) refused(err error) *Error {
	if a.broken != nil {
		var e *Error
		if errors.As(a.broken, &e) {
			return e
		}
	}
	var what, do []string
	if len(a.methods) > 0 {
		what = append(what, "the server accepts "+strings.Join(a.methods, ", "))
	}
	if len(a.tried) > 0 {
		what = append(what, "tried "+strings.Join(a.tried, ", "))
	} else {
		what = append(what, "no key was offered")
	}
	what = append(what, a.notes...)
	switch text := err.Error(); {
	case strings.Contains(text, "Too many authentication failures"):
		what = append(what, "then the server had enough (MaxAuthTries)")
		do = append(do, "name the right key (identity in the inventory, IdentityFile in ssh_config), with IdentitiesOnly yes in ssh_config when the agent has many")
	case len(a.methods) > 0 && !slices.Contains(a.methods, "publickey"):
		do = append(do, "let keys log in (PubkeyAuthentication yes in the node's sshd_config): hopbed sends no passwords")
	case len(a.tried) == 0:
		do = append(do, "name a key (identity in the inventory, IdentityFile in ssh_config), or load one into an agent: ssh-add")
	default:
		do = append(do, "put one of the public keys into ~/.ssh/authorized_keys of "+a.hop.conf.User+" there (ssh-copy-id), or name the right user and key")
	}
	return a.hop.fail(AuthRefused, strings.Join(what, "; "), strings.Join(do, "; "), err)
}
