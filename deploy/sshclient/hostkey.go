package sshclient

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hopbed/hopbed/deploy/sshconfig"
)

// verifier checks the key of one host against known_hosts.
type verifier struct {
	d     *dialer
	hop   *hop
	known *knownHosts
	name  string      // in known_hosts
	lines []knownLine // of the host
	err   *Error      // why the key was refused
}

func (d *dialer) verifier(h *hop) (*verifier, error) {
	known, err := readKnownHosts(append(slices.Clone(h.conf.UserKnown), h.conf.GlobalKnown...))
	if err != nil {
		return nil, h.fail(Settings, err.Error(), "make the file readable, or name another one", err)
	}
	v := &verifier{d: d, hop: h, known: known, name: h.knownName()}
	v.lines = known.of(v.name)
	return v, nil
}

// knownName is what known_hosts calls the host.
func (h *hop) knownName() string {
	if h.conf.HostKeyAlias != "" {
		return h.conf.HostKeyAlias
	}
	return knownName(h.conf.HostName, h.conf.Port)
}

// plainLines are those of a host that is not known with its port: like ssh, one that
// is known without is known by that key at each of its ports.
func (v *verifier) plainLines() []knownLine {
	if v.hop.conf.HostKeyAlias != "" || v.hop.conf.Port == 22 || len(v.lines) > 0 {
		return nil
	}
	return v.known.of(v.hop.conf.HostName)
}

// algorithms puts those before the others for which known_hosts has a key of the
// host: a server has keys of several types, and shows the one that the client
// prefers. Without the order it would show one that is not known.
func (v *verifier) algorithms() ([]string, error) {
	all, err := algorithms("HostKeyAlgorithms", v.hop.conf.HostKeyAlgorithms, ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys)
	if err != nil {
		return nil, err
	}
	lines := v.lines
	if len(lines) == 0 {
		lines = v.plainLines()
	}
	var first, rest []string
	for _, a := range all {
		if slices.ContainsFunc(lines, func(l knownLine) bool { return l.serves(a) }) {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	if len(first) == 0 {
		return all, nil // an unknown host: its certificates first, as ssh asks for them
	}
	return append(first, rest...), nil
}

const certSuffix = "-cert-v01@openssh.com"

// serves reports whether a host key that is negotiated with an algorithm may be
// proven by this line.
func (l *knownLine) serves(algorithm string) bool {
	switch l.marker {
	case "@revoked":
		return false
	case "@cert-authority":
		return strings.HasSuffix(algorithm, certSuffix)
	}
	return keyType(algorithm) == l.key.Type()
}

// keyType is the type of the keys that an algorithm signs with.
func keyType(algorithm string) string {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		return ssh.KeyAlgoRSA
	}
	return algorithm
}

// check is the ssh.HostKeyCallback.
func (v *verifier) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	if v.err = v.judge(key); v.err != nil {
		return v.err
	}
	return nil
}

func (v *verifier) judge(key ssh.PublicKey) *Error {
	cert, isCert := key.(*ssh.Certificate)
	if isCert {
		if e, trusted := v.judgeCert(cert); e != nil || trusted {
			return e
		}
		key = cert.Key // nobody vouches for the certificate: its key may be known by itself
	}
	lines := v.lines
	if len(lines) == 0 {
		// Without its port the host counts as known only by the same key.
		for _, l := range v.plainLines() {
			if equal(l.key, key) {
				lines = append(lines, l)
			}
		}
	}
	var others []knownLine
	found := false
	for _, l := range lines {
		switch {
		case l.marker == "@revoked" && equal(l.key, key):
			return v.revoked(key, l)
		case l.marker != "":
		case equal(l.key, key):
			found = true
		default:
			others = append(others, l)
		}
	}
	switch {
	case found:
		return nil
	case len(others) > 0:
		return v.changed(key, others)
	case v.d.o.AcceptNew || v.hop.conf.StrictHostKey == "accept-new":
		return v.accept(key)
	}
	return v.unknown(key)
}

func equal(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// judgeCert reports whether an authority of known_hosts vouches for a certificate.
func (v *verifier) judgeCert(cert *ssh.Certificate) (e *Error, trusted bool) {
	for _, l := range v.lines {
		if l.marker == "@revoked" && (equal(l.key, cert.Key) || equal(l.key, cert.SignatureKey)) {
			return v.revoked(l.key, l), false
		}
	}
	for _, l := range v.lines {
		if l.marker != "@cert-authority" || !equal(l.key, cert.SignatureKey) {
			continue
		}
		principal := v.hop.conf.HostKeyAlias
		if principal == "" {
			principal = v.hop.conf.HostName
		}
		checker := ssh.CertChecker{Clock: time.Now}
		err := checker.CheckCert(principal, cert)
		if err == nil && cert.CertType != ssh.HostCert {
			err = fmt.Errorf("it is a user's, not a host's")
		}
		if err == nil && len(cert.ValidPrincipals) == 0 {
			err = fmt.Errorf("it names no host")
		}
		if err != nil {
			return v.hop.fail(HostKeyChanged, fmt.Sprintf("the host's certificate, signed by the authority of %s, is not valid: %s", l.at, oneLine(err.Error())),
				"issue a new certificate for "+principal, err), false
		}
		return nil, true
	}
	return nil, false
}

func describe(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

func (v *verifier) revoked(key ssh.PublicKey, l knownLine) *Error {
	return v.hop.fail(HostKeyRevoked, fmt.Sprintf("the server has the key %s, which %s says is revoked", describe(key), l.at),
		"do not trust this server; give the node a new host key, or correct that line", nil)
}

func (v *verifier) changed(key ssh.PublicKey, others []knownLine) *Error {
	var known []string
	file := ""
	for _, l := range others {
		known = append(known, describe(l.key)+" at "+l.at)
		if file == "" {
			file = l.at[:strings.LastIndexByte(l.at, ':')]
		}
	}
	return v.hop.fail(HostKeyChanged, fmt.Sprintf("the server has the key %s, but known_hosts has %s; somebody may be in between, or the node was installed anew", describe(key), strings.Join(known, ", ")),
		"if the fingerprint is the node's own (run on it: "+ownPrint(key)+"): "+remedy("ssh-keygen", "-R", v.name, "-f", file)+", then "+v.learn(), nil)
}

func (v *verifier) unknown(key ssh.PublicKey) *Error {
	e := v.hop.fail(HostKeyUnknown, fmt.Sprintf("%s is not in %s; the server has the key %s", v.name, strings.Join(v.files(), ", "), describe(key)),
		"if the fingerprint is the node's own (run on it: "+ownPrint(key)+"): "+v.learn(), nil)
	if len(v.known.bad) > 0 {
		e.What += "; a line there cannot be used: " + v.known.bad[0]
	}
	return e
}

// ownPrint is the command that shows the fingerprint of a key on its host.
func ownPrint(key ssh.PublicKey) string {
	name := strings.TrimPrefix(key.Type(), "ssh-")
	if strings.HasPrefix(name, "ecdsa") {
		name = "ecdsa"
	}
	return "ssh-keygen -lf /etc/ssh/ssh_host_" + name + "_key.pub"
}

func (v *verifier) files() []string {
	files := append(slices.Clone(v.hop.conf.UserKnown), v.hop.conf.GlobalKnown...)
	if len(files) == 0 {
		return []string{"known_hosts (no file is configured)"}
	}
	return files
}

// learn is the command that makes the host known. Where ssh_config keeps nothing
// (UserKnownHostsFile /dev/null), it makes a file that the inventory can name.
func (v *verifier) learn() string {
	files := v.hop.conf.UserKnown
	switch {
	case len(files) == 0:
		return v.learnInto("")
	case !slices.ContainsFunc(files, func(f string) bool { return f != os.DevNull }):
		const file = "lab_known_hosts"
		return v.learnInto(file) + ", and name the file in the inventory (known-hosts: " + file + ")"
	}
	return v.learnInto(files[0])
}

// learnInto is the command that makes the host known in a file; "" = the user's.
func (v *verifier) learnInto(known string) string {
	c := v.hop.conf
	file := "~/.ssh/known_hosts"
	if known != "" {
		file = remedy(known)
	}
	if v.hop.first && c.HostKeyAlias == "" {
		words := []string{"ssh-keyscan"}
		if c.Port != 22 {
			words = append(words, "-p", fmt.Sprint(c.Port))
		}
		return remedy(append(words, c.HostName)...) + " >> " + file
	}
	// ssh-keyscan goes through no jump host and knows no alias.
	words := []string{"ssh", "-o", "StrictHostKeyChecking=ask"}
	if known != "" {
		words = append(words, "-o", "UserKnownHostsFile="+known)
	}
	if c.HostKeyAlias != "" {
		words = append(words, "-o", "HostKeyAlias="+c.HostKeyAlias)
	}
	if len(v.hop.before) > 0 {
		words = append(words, "-J", strings.Join(v.hop.before, ","))
	}
	if c.Port != 22 {
		words = append(words, "-p", fmt.Sprint(c.Port))
	}
	return "log in once: " + remedy(append(words, c.User+"@"+c.HostName)...)
}

// remedy writes a command that one can paste into a shell.
func remedy(words ...string) string {
	var out []string
	for _, w := range words {
		if plain(w) || plain(strings.NewReplacer("=", "", "@", "").Replace(w)) {
			out = append(out, w)
			continue
		}
		var b strings.Builder
		quoteWord(&b, w)
		out = append(out, b.String())
	}
	return strings.Join(out, " ")
}

// accept writes down the key of a host that nothing is known about.
func (v *verifier) accept(key ssh.PublicKey) *Error {
	v.d.file.Lock()
	defer v.d.file.Unlock()
	if len(v.hop.conf.UserKnown) == 0 {
		return v.hop.fail(HostKeyUnknown, "no known_hosts file is configured to write the new key to", "name one: UserKnownHostsFile, or known-hosts in the inventory", nil)
	}
	// Another connection to the same host may have been here first.
	file := v.hop.conf.UserKnown[0]
	now, err := readKnownHosts([]string{file})
	if err == nil {
		for _, l := range now.of(v.name) {
			if l.marker == "" && equal(l.key, key) {
				return nil
			} else if l.marker == "" {
				return v.changed(key, []knownLine{l})
			}
		}
		err = addKnownHost(file, v.name, v.hop.conf.HashKnown, key)
	}
	if err != nil {
		return v.hop.fail(HostKeyUnknown, "the new key cannot be written to "+file+": "+err.Error(), "make the file writable", err)
	}
	v.d.warn(v.hop.node.Name, fmt.Sprintf("the host key of %s was not known and is accepted: %s, written to %s", v.name, describe(key), file))
	return nil
}

// algorithms applies a list of ssh_config to what there is: +more, -fewer, ^first,
// or the list itself. Names that only OpenSSH knows are passed over.
func algorithms(key, list string, secure, insecure []string) ([]string, error) {
	def := slices.Clone(secure)
	if list == "" {
		return def, nil
	}
	mode := list[0]
	if strings.IndexByte("+-^", mode) >= 0 {
		list = list[1:]
	} else {
		mode = 0
	}
	patterns := strings.Split(list, ",")
	var named []string
	for _, p := range patterns {
		for _, a := range append(slices.Clone(secure), insecure...) {
			if sshconfig.Match(a, p) && !slices.Contains(named, a) {
				named = append(named, a)
			}
		}
	}
	inNamed := func(a string) bool { return slices.Contains(named, a) }
	var out []string
	switch mode {
	case '+':
		out = append(def, slices.DeleteFunc(named, func(a string) bool { return slices.Contains(def, a) })...)
	case '-':
		out = slices.DeleteFunc(def, inNamed)
	case '^':
		out = append(slices.Clone(named), slices.DeleteFunc(def, inNamed)...)
	default:
		out = named
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s %q leaves nothing that hopbed knows; it knows %s", key, oneLine(list), strings.Join(append(slices.Clone(secure), insecure...), ", "))
	}
	return out, nil
}
