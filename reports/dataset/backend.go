package dataset

// BackendMeaning says what the numbers of a back end are numbers of, "" for one
// that is not known here.
func BackendMeaning(backend string) string {
	switch backend {
	case "sim":
		return "virtual time; TCP is hopbed’s own model of TCP, Hop is the same code as in live runs"
	case "netns":
		return "real time in network namespaces; TCP is that of the Linux kernel"
	case "ssh":
		return "real nodes; the links are what they are, TCP is that of each node’s kernel"
	}
	return ""
}

// BackendText is the name of a back end with its meaning.
func BackendText(backend string) string {
	if m := BackendMeaning(backend); m != "" {
		return backend + " (" + m + ")"
	}
	return backend
}
