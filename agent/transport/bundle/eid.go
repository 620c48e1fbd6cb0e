package bundle

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// Scheme is the code of a URI scheme of endpoint ids (RFC 9171 §9.7).
type Scheme uint8

// The schemes. The zero EID is the null endpoint "dtn:none".
const (
	SchemeNone Scheme = 0 // not a code: the null endpoint
	SchemeDTN  Scheme = 1
	SchemeIPN  Scheme = 2
)

// EID is an endpoint id (RFC 9171 §4.2.5.1). It can be compared.
type EID struct {
	Scheme Scheme
	// Node and Service are the numbers of "ipn:Node.Service".
	Node, Service uint64
	// SSP is what follows "dtn:", such as "//node/service".
	SSP string
}

// maxEID bounds an endpoint id as text, in bytes.
const maxEID = 1023

// IPN returns the endpoint id "ipn:node.service"; service 0 is the node's own
// administrative endpoint, which serves as the node's id.
func IPN(node, service uint64) EID { return EID{Scheme: SchemeIPN, Node: node, Service: service} }

// String writes the endpoint id as a URI.
func (e EID) String() string {
	switch e.Scheme {
	case SchemeIPN:
		return fmt.Sprintf("ipn:%d.%d", e.Node, e.Service)
	case SchemeDTN:
		return "dtn:" + e.SSP
	}
	return "dtn:none"
}

// ParseEID reads an endpoint id from a URI. Numbers are written without signs
// and leading zeros.
func ParseEID(s string) (EID, error) {
	if len(s) > maxEID {
		return EID{}, fmt.Errorf("bundle: an endpoint id of %d bytes: at most %d", len(s), maxEID)
	}
	scheme, rest, _ := strings.Cut(s, ":")
	switch scheme {
	case "dtn":
		if rest == "none" {
			return EID{}, nil
		}
		if strings.HasPrefix(rest, "//") && len(rest) > 2 {
			return EID{Scheme: SchemeDTN, SSP: rest}, nil
		}
	case "ipn":
		node, service, ok := strings.Cut(rest, ".")
		if ok {
			n, err1 := strconv.ParseUint(node, 10, 64)
			v, err2 := strconv.ParseUint(service, 10, 64)
			if e := IPN(n, v); err1 == nil && err2 == nil && e.String() == s {
				return e, nil
			}
		}
	}
	return EID{}, fmt.Errorf("bundle: %q is no endpoint id, want dtn:none, dtn://node/service or ipn:node.service", s)
}

// MarshalCBOR writes the endpoint id as the pair of its scheme and what is
// specific to the scheme.
func (e EID) MarshalCBOR() ([]byte, error) {
	switch e.Scheme {
	case SchemeIPN:
		return encoder.Marshal([]any{uint64(SchemeIPN), []uint64{e.Node, e.Service}})
	case SchemeDTN:
		return encoder.Marshal([]any{uint64(SchemeDTN), e.SSP})
	}
	return encoder.Marshal([]uint64{uint64(SchemeDTN), 0})
}

// UnmarshalCBOR reads an endpoint id, which must be deterministically encoded.
func (e *EID) UnmarshalCBOR(b []byte) error {
	if err := e.decode(b); err != nil {
		return err
	}
	if !bytes.Equal(encode(*e), b) {
		return fmt.Errorf("the endpoint id %v is not deterministically encoded", *e)
	}
	return nil
}

func (e *EID) decode(b []byte) error {
	var pair struct {
		_      struct{} `cbor:",toarray"`
		Scheme uint64
		SSP    alias
	}
	if err := decoder.Unmarshal(b, &pair); err != nil {
		return err
	}
	switch pair.Scheme {
	case uint64(SchemeDTN):
		var zero uint64
		if decoder.Unmarshal(pair.SSP, &zero) == nil {
			if zero != 0 {
				return fmt.Errorf("the scheme dtn has the number %d: only 0 (none) is one", zero)
			}
			*e = EID{}
			return nil
		}
		var ssp string
		if err := decoder.Unmarshal(pair.SSP, &ssp); err != nil {
			return err
		}
		got, err := ParseEID("dtn:" + ssp)
		if err == nil && got.Scheme == SchemeNone {
			err = fmt.Errorf("dtn:none is written as a number")
		}
		*e = got
		return err
	case uint64(SchemeIPN):
		var n struct {
			_             struct{} `cbor:",toarray"`
			Node, Service uint64
		}
		err := decoder.Unmarshal(pair.SSP, &n)
		*e = IPN(n.Node, n.Service)
		return err
	}
	return fmt.Errorf("an endpoint id has the scheme %d, want %d (dtn) or %d (ipn)", pair.Scheme, SchemeDTN, SchemeIPN)
}

// alias is an encoded item that is looked at later: the library's RawMessage
// without the copy. It lives as long as what was decoded.
type alias []byte

// UnmarshalCBOR implements cbor.Unmarshaler.
func (a *alias) UnmarshalCBOR(b []byte) error {
	*a = b
	return nil
}

// encoder writes the deterministic form (RFC 8949 §4.2.1), which RFC 9171 §4.1
// demands of every block.
var encoder = mode(cbor.CoreDetEncOptions().EncMode())

// decoder refuses what no block of a bundle contains: indefinite lengths, tags,
// deep nesting, long arrays. What is not deterministic in other ways is found by
// encoding again (see Decode).
var decoder = mode(cbor.DecOptions{
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	MaxNestedLevels:  8,
	MaxArrayElements: 32,
	MaxMapPairs:      16,
}.DecMode())

func mode[M any](m M, err error) M {
	if err != nil {
		panic("bundle: the options of the CBOR library: " + err.Error())
	}
	return m
}
