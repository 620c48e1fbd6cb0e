package interchange

import (
	"bytes"
	"io"
	"strings"
)

// format is a file format: one line in the table.
type format struct {
	name string
	what string
	read func([]byte) (*Network, error)
	// write is nil where there is nothing that reads such a file.
	write func(io.Writer, *Network) error
}

// formats is the table, in the order in which people see it.
var formats = []format{
	{"meshnet-lab", "a topology of meshnet-lab (JSON: nodes, links with source_tq and target_tq)", readMeshnetLab, writeMeshnetLab},
	{"olsr-jsoninfo", "olsrd's plugin jsoninfo (JSON: topology with linkQuality and neighborLinkQuality)", readJSONInfo, writeJSONInfo},
	{"olsr-txtinfo", "olsrd's plugin txtinfo (the table Topology)", readTxtInfo, nil},
	{"batman-adv", "batman-adv: batadv-vis or alfred's vis (jsondoc, or JSON lines), or batctl originators_json of one node", readBatman, nil},
	{"netjson", "NetJSON NetworkGraph with the metric ETX or TQ", readNetJSON, writeNetJSON},
}

// Formats returns the names of the formats that Read knows.
func Formats() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.name)
	}
	return out
}

// Writable returns the names of the formats that Write knows.
func Writable() []string {
	var out []string
	for _, f := range formats {
		if f.write != nil {
			out = append(out, f.name)
		}
	}
	return out
}

// What describes a format in a line; "" when there is none of the name.
func What(name string) string {
	for _, f := range formats {
		if f.name == name {
			return f.what
		}
	}
	return ""
}

// Read reads a file. The error is an *Error.
func Read(name string, data []byte) (*Network, error) {
	for _, f := range formats {
		if f.name != name {
			continue
		}
		if len(data) > MaxFile {
			return nil, refuse("the file is larger than %d MiB", MaxFile>>20)
		}
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		if len(bytes.TrimSpace(data)) == 0 {
			return nil, refuse("the file is empty")
		}
		return f.read(data)
	}
	return nil, refuse("there is no format %q: one of %s", name, strings.Join(Formats(), ", "))
}

// Write writes a network so that the tool of a format, and Read, understand it.
func Write(w io.Writer, name string, n *Network) error {
	for _, f := range formats {
		if f.name == name && f.write != nil {
			return f.write(w, n)
		}
	}
	return refuse("there is no writer of the format %q: one of %s", name, strings.Join(Writable(), ", "))
}
