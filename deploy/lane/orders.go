package lane

// Orders is what the host tells the guest's first process, as JSON at OrdersPath
// in its initial file system.
type Orders struct {
	Modules  []Module `json:"modules"` // in the order in which they are loaded
	HostRoot bool     `json:"host_root,omitempty"`
	Share    bool     `json:"share,omitempty"`
	Dir      string   `json:"dir"`
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
}

// Module is one kernel module in the initial file system.
type Module struct {
	File   string `json:"file"`
	Params string `json:"params,omitempty"`
}

// Where things are in the guest, and the names of what host and guest share.
const (
	OrdersPath  = "/orders.json"
	ProgramPath = "/program"
	SharePath   = "/share"
	HostTag     = "hostroot"
	ShareTag    = "share"
	// Marker is set to 1 in the environment of the program.
	Marker = "HOPBED_LANE"
	// ExitPort is the I/O port of the device through which the guest says its
	// status; QEMU then ends with 2·value+1.
	ExitPort = 0xf4
)
