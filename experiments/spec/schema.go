package spec

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of an experiment file, for editors
// and other programs. It is generated from the types of this package; what
// concerns several values at once is beyond it and is left to Parse.
//
//go:embed schema.json
var Schema []byte
