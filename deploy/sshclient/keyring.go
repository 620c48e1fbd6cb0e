package sshclient

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
)

// keyring holds the key files of all connections, so that each is read, and its
// passphrase asked for, once.
type keyring struct {
	ask func(ctx context.Context, file string, again bool) ([]byte, error)

	mu    sync.Mutex
	files map[string]*keyFile
	turn  chan struct{} // who may ask: one at a time
}

// keyFile is a private key, encrypted or not, or only its public part.
type keyFile struct {
	path   string
	err    error            // it cannot be used
	absent bool             // there is no such file
	public ssh.PublicKey    // nil: known after decryption only
	cert   *ssh.Certificate // of FILE-cert.pub, where that is there
	turn   chan struct{}    // guards what follows
	signer ssh.Signer       // when it is decrypted
	locked []byte           // when it is encrypted
	denied error            // nobody knew the passphrase
}

// passphraseTries is how often ssh asks.
const passphraseTries = 3

// errNoPassphrase is a key that was left out.
var errNoPassphrase = errors.New("no passphrase was given")

func (k *keyring) file(path string) *keyFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files == nil {
		k.files, k.turn = map[string]*keyFile{}, make(chan struct{}, 1)
	}
	f := k.files[path]
	if f == nil {
		f = &keyFile{path: path, turn: make(chan struct{}, 1)}
		f.load()
		k.files[path] = f
	}
	return f
}

func (f *keyFile) load() {
	pub, cert := readPublic(f.path+".pub"), readPublic(f.path+"-cert.pub")
	f.cert, _ = cert.(*ssh.Certificate)
	text, err := readPrivate(f.path)
	if errors.Is(err, os.ErrNotExist) && pub != nil {
		f.public = pub // the private part may be in the agent
		return
	}
	if err != nil {
		f.err, f.absent = err, errors.Is(err, os.ErrNotExist)
		return
	}
	signer, err := ssh.ParsePrivateKey(text)
	var missing *ssh.PassphraseMissingError
	switch {
	case err == nil:
		f.signer, f.public = signer, signer.PublicKey()
	case errors.As(err, &missing):
		if f.public = missing.PublicKey; f.public == nil {
			f.public = pub
		}
		f.locked = text
	default:
		if f.public = readPublic(f.path); f.public == nil {
			f.err = fmt.Errorf("%s is no private key that hopbed can read: %s", f.path, oneLine(err.Error()))
		}
	}
}

const maxKeyFile = 1 << 20

func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := private(f); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// readPublic returns the public key or the certificate in a file, or nil.
func readPublic(path string) ssh.PublicKey {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return key
}

// unlock returns the signer of a file, asking for its passphrase if it must. busy
// is called before somebody is waited for, and what it returns afterwards.
// batch is that nobody may be asked.
func (k *keyring) unlock(ctx context.Context, f *keyFile, busy func() func(), batch bool) (ssh.Signer, error) {
	defer busy()()
	if err := take(ctx, f.turn); err != nil {
		return nil, err
	}
	defer func() { <-f.turn }()
	switch {
	case f.signer != nil:
		return f.signer, nil
	case f.denied != nil:
		return nil, f.denied
	case f.locked == nil:
		return nil, fmt.Errorf("%s: only the public key is there, and the agent does not have the private one", f.path)
	case batch:
		return nil, fmt.Errorf("%s is encrypted, and BatchMode in ssh_config lets nobody be asked for its passphrase; ssh-add %[1]s", f.path)
	case k.ask == nil:
		return nil, fmt.Errorf("%s is encrypted, and there is nobody to ask for its passphrase; ssh-add %[1]s", f.path)
	}
	if err := take(ctx, k.turn); err != nil {
		return nil, err
	}
	defer func() { <-k.turn }()
	for try := range passphraseTries {
		phrase, err := k.ask(ctx, f.path, try > 0)
		if err != nil {
			if ctx.Err() == nil {
				f.denied = fmt.Errorf("%s: its passphrase was not given: %w", f.path, err)
				return nil, f.denied
			}
			return nil, err // another connection may have more patience
		}
		if len(phrase) == 0 {
			f.denied = fmt.Errorf("%s: %w", f.path, errNoPassphrase)
			return nil, f.denied
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(f.locked, phrase)
		clear(phrase)
		if err == nil {
			f.signer, f.locked = signer, nil
			return signer, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			f.denied = fmt.Errorf("%s cannot be decrypted: %s", f.path, oneLine(err.Error()))
			return nil, f.denied
		}
	}
	f.denied = fmt.Errorf("%s: wrong passphrase, %d times", f.path, passphraseTries)
	return nil, f.denied
}

// take waits for a turn.
func take(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lazySigner signs with a key that is decrypted when the server wants it: like
// ssh, nobody is asked for the passphrase of a key that the server refuses.
type lazySigner struct {
	public ssh.PublicKey
	unlock func() (ssh.Signer, error)
}

func (l *lazySigner) PublicKey() ssh.PublicKey { return l.public }

func (l *lazySigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	s, err := l.unlock()
	if err != nil {
		return nil, err
	}
	return s.Sign(rand, data)
}

// SignWithAlgorithm is what RSA keys need, whose default algorithm is obsolete.
func (l *lazySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := l.unlock()
	if err != nil {
		return nil, err
	}
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		return nil, fmt.Errorf("a key of type %s cannot sign by %s", l.public.Type(), algorithm)
	}
	return as.SignWithAlgorithm(rand, data, algorithm)
}
