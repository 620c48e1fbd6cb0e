package store

// CampaignStatus says how far a campaign came.
type CampaignStatus string

// The states of a campaign.
const (
	CampaignRunning     CampaignStatus = "running"     // begun, not ended
	CampaignComplete    CampaignStatus = "complete"    // every run of the plan is complete and valid
	CampaignIncomplete  CampaignStatus = "incomplete"  // ended, but some run failed or is invalid
	CampaignInterrupted CampaignStatus = "interrupted" // stopped by the user; can be resumed
	CampaignFailed      CampaignStatus = "failed"      // ended by an error before its plan was done
	// CampaignKilled is never stored: it is what a reader finds when a campaign is
	// marked as running and no hopbed writes to the database.
	CampaignKilled CampaignStatus = "killed"
)

// Campaign is one execution of an experiment file on one back end.
type Campaign struct {
	ID         int64          `db:"id"`
	Name       string         `db:"name"`  // the experiment's name
	Title      string         `db:"title"` // one line for people
	Backend    string         `db:"backend"`
	Seed       Seed           `db:"seed"`
	Quick      bool           `db:"quick"` // shortened: not for conclusions
	Status     CampaignStatus `db:"status"`
	Created    Stamp          `db:"created_utc"`
	Finished   Stamp          `db:"finished_utc"`
	Planned    int64          `db:"planned_runs"`   // runs that the plan holds
	Reference  string         `db:"reference"`      // published values to compare with, "" for none
	FileText   string         `db:"file_text"`      // the experiment as run, with --set and --quick applied
	FileSHA256 string         `db:"file_sha256"`    // of FileText, hex; set by CreateCampaign when empty
	Version    string         `db:"hopbed_version"` // of the binary that ran it
	HostFacts  Facts          `db:"host_facts"`
	Note       string         `db:"note"` // how it ended, if not plainly
	// Batch is the id of the first of the campaigns that one command carried out
	// on several back ends (JoinCampaigns); missing for one that stands alone.
	Batch Opt[int64] `db:"batch"`
}

// RunStatus says how a run ended.
type RunStatus string

// The states of a run. Only complete runs are valid and enter statistics.
const (
	RunComplete    RunStatus = "complete"    // ran to its end and passed every validity check
	RunInvalid     RunStatus = "invalid"     // ran to its end, but a validity check failed
	RunFailed      RunStatus = "failed"      // ended by an error
	RunInterrupted RunStatus = "interrupted" // stopped by the user
)

// Run is one point of the experiment's matrix in one repetition.
type Run struct {
	ID             int64        `db:"id"`
	CampaignID     int64        `db:"campaign_id"`
	Backend        string       `db:"backend"`
	Seed           Seed         `db:"seed"`
	Repetition     int          `db:"repetition"` // 1, 2, …
	Params         Params       `db:"params"`     // the point
	Attempt        int          `db:"attempt"`    // 1, 2, …; SaveRun gives the next one when 0
	Transport      string       `db:"transport"`  // label; "mixed" when the flows differ
	Quick          bool         `db:"quick"`
	WarmupS        float64      `db:"warmup_s"`
	DurationS      float64      `db:"duration_s"` // of the measured interval, after the warm-up
	SampleS        Opt[float64] `db:"sample_s"`   // interval of the samples
	WallS          float64      `db:"wall_s"`
	Started        Stamp        `db:"started_utc"`
	Status         RunStatus    `db:"status"`
	Valid          bool         `db:"valid"` // derived by the database: status is complete
	InvalidReasons Strings      `db:"invalid_reasons"`
	Warnings       Strings      `db:"warnings"`
	Error          string       `db:"error"`      // of a failed run
	TraceHash      string       `db:"trace_hash"` // hex, "" when the back end has none

	// How punctual the emulated medium was; missing in virtual time.
	LatenessP50Us Opt[float64] `db:"lateness_p50_us"`
	LatenessP99Us Opt[float64] `db:"lateness_p99_us"`
	LatenessMaxUs Opt[float64] `db:"lateness_max_us"`
	LateShare     Opt[float64] `db:"late_share"`   // share of events later than the bound
	StallMaxUs    Opt[float64] `db:"stall_max_us"` // longest stall of the pacing thread

	Events   Opt[int64]   `db:"events_fired"`
	CPUS     Opt[float64] `db:"cpu_s"`       // CPU time of the emulator or the simulation
	AgentS   Opt[float64] `db:"agent_cpu_s"` // CPU time of all agents together
	StealS   Opt[float64] `db:"steal_s"`     // CPU time taken by the hypervisor
	Priority string       `db:"priority"`    // scheduling class that the medium got, e.g. "FIFO 10"
	Facts    Facts        `db:"facts"`       // further facts of this run
}

// Node is one node of a run.
type Node struct {
	RunID   int64        `db:"run_id"`
	Node    int          `db:"node"` // index in the experiment's order
	Name    string       `db:"name"`
	Address string       `db:"address"`
	XM      Opt[float64] `db:"x_m"`
	YM      Opt[float64] `db:"y_m"`
	Facts   Facts        `db:"facts"`  // what was read back from the node
	Wired   bool         `db:"wired"`  // it has no radio
	Bridge  bool         `db:"bridge"` // it joins its interfaces as a bridge does
}

// Link is one direction between two nodes of a run.
type Link struct {
	RunID      int64        `db:"run_id"`
	Src        int          `db:"src"`
	Dst        int          `db:"dst"`
	Delivery   Opt[float64] `db:"delivery"` // probability that one data frame survives alone, without ARQ
	SNRdB      Opt[float64] `db:"snr_db"`
	RxPowerDBm Opt[float64] `db:"rx_power_dbm"`
	DistanceM  Opt[float64] `db:"distance_m"`
	ETX        Opt[float64] `db:"etx"`      // expected transmissions, both directions
	Routed     bool         `db:"routed"`   // some flow's path uses it
	Measured   string       `db:"measured"` // where the values come from: "model", "probes", "import"
}

// FlowStatus says how a flow ended.
type FlowStatus string

// The states of a flow. A flow that could not get anything through is starved,
// not failed: its goodput of 0 is a measurement.
const (
	FlowOK      FlowStatus = "ok"      // measured over the whole interval, or finished its data
	FlowTimeout FlowStatus = "timeout" // never connected, or did not finish its data: goodput is what arrived
	FlowFailed  FlowStatus = "failed"  // could not be measured: goodput is missing
)

// Flow is one flow of a run with its result.
type Flow struct {
	RunID     int64      `db:"run_id"`
	Flow      int        `db:"flow"`
	Transport string     `db:"transport"`
	Workload  string     `db:"workload"`
	Src       int        `db:"src"`
	Dst       int        `db:"dst"`
	Hops      int        `db:"hops"`
	Path      Path       `db:"path"`
	StartS    float64    `db:"start_s"` // since the start of the run
	StopS     float64    `db:"stop_s"`
	Size      Opt[int64] `db:"size_bytes"` // of a sized workload
	// Bytes are application bytes delivered at the destination within the part of
	// the measured interval in which the flow was meant to run; GoodputBps is
	// 8 × Bytes over its length (MeasuredS).
	Bytes         int64        `db:"bytes"`
	GoodputBps    Opt[float64] `db:"goodput_bps"` // missing exactly when Status is failed
	SetupS        Opt[float64] `db:"setup_s"`     // connection set-up, not part of the goodput
	CompletionS   Opt[float64] `db:"completion_s"`
	CC            string       `db:"cc"` // congestion control as read back, "" when the transport has none
	SentBytes     Opt[int64]   `db:"sent_bytes"`
	RetransBytes  Opt[int64]   `db:"retrans_bytes"`
	Timeouts      Opt[int64]   `db:"timeouts"`
	Blocks        Opt[int64]   `db:"blocks"`
	CorruptBlocks Opt[int64]   `db:"corrupt_blocks"`
	Counters      Counters     `db:"counters"`
	Status        FlowStatus   `db:"status"`
	Error         string       `db:"error"`
	// Role is the half that the flow is of a web exchange (responses, requests), ""
	// for none; Peer is the flow of the other half.
	Role string     `db:"role"`
	Peer Opt[int64] `db:"peer"`
	DSCP Opt[int64] `db:"dscp"` // of its packets; missing where the transport chooses
	// Of a workload of messages, those that became ready in the measured interval:
	// how many there were, how many of them were delivered by the end of the run,
	// and quantiles of the delays of these (missing without any).
	Messages          Opt[int64] `db:"messages"`
	MessagesDelivered Opt[int64] `db:"messages_delivered"`
	DelayP50Us        Opt[int64] `db:"delay_p50_us"`
	DelayP95Us        Opt[int64] `db:"delay_p95_us"`
	DelayP99Us        Opt[int64] `db:"delay_p99_us"`
	// RFactor and MOS say how a listener would judge a voip flow (ITU-T G.107).
	RFactor Opt[float64] `db:"r_factor"`
	MOS     Opt[float64] `db:"mos"`
}

// StarvedBelow tells that the flow was starved: its goodput was measured and is
// less than so many bits per second. A sized flow that delivered everything was
// served, whatever its goodput: that counts what arrived within the measured
// interval, over the whole of it. Nor is a flow starved whose load is given:
// little may be all that it has to send.
func (f *Flow) StarvedBelow(bps float64) bool {
	return f.GoodputBps.OK && f.GoodputBps.V < bps && !f.CompletionS.OK && !f.LoadGiven()
}

// LoadGiven tells that the flow's workload, messages, says how much it has to send
// and when: its goodput says more of the workload than of the network.
func (f *Flow) LoadGiven() bool {
	switch f.Workload {
	case "poisson", "trace", "voip", "web":
		return true
	}
	return false
}

// RoleRequests is the role of the flow that carries the requests of a web
// exchange: it is no flow that the experiment file lists.
const RoleRequests = "requests"

// Sides of a sample.
const (
	SideSrc   = "src"
	SideDst   = "dst"
	SideRelay = "relay"
)

// Sample is the state of one flow at one of its nodes at one moment.
// Cumulative columns count from the start of the run.
type Sample struct {
	RunID           int64        `db:"run_id"`
	Flow            int          `db:"flow"`
	Side            string       `db:"side"`
	Node            int          `db:"node"`
	TUs             int64        `db:"t_us"`            // since the start of the run
	DeliveredBytes  Opt[int64]   `db:"delivered_bytes"` // cumulative application bytes, at the destination
	SentBytes       Opt[int64]   `db:"sent_bytes"`      // cumulative payload put on the wire, repeats included
	RetransBytes    Opt[int64]   `db:"retrans_bytes"`   // cumulative, of which repeats
	RetransSegments Opt[int64]   `db:"retrans_segments"`
	AckedBytes      Opt[int64]   `db:"acked_bytes"` // cumulative
	NotSentBytes    Opt[int64]   `db:"not_sent_bytes"`
	HeldBytes       Opt[int64]   `db:"held_bytes"` // held by the node, not yet reliably passed on
	CwndPackets     Opt[float64] `db:"cwnd_packets"`
	SsthreshPackets Opt[float64] `db:"ssthresh_packets"`
	InFlightPackets Opt[float64] `db:"in_flight_packets"`
	LostPackets     Opt[int64]   `db:"lost_packets"` // marked lost at this moment
	SRTTUs          Opt[int64]   `db:"srtt_us"`
	MinRTTUs        Opt[int64]   `db:"min_rtt_us"`
	RTTVarUs        Opt[int64]   `db:"rttvar_us"`
	RTOUs           Opt[int64]   `db:"rto_us"`
	DeliveryRateBps Opt[int64]   `db:"delivery_rate_bps"` // the kernel's estimate (tcp_info)
	CAState         Opt[string]  `db:"ca_state"`          // open, disorder, cwr, recovery, loss
	BlocksHeld      Opt[int64]   `db:"blocks_held"`       // Hop: received and not yet reliably passed on
	BlocksDone      Opt[int64]   `db:"blocks_done"`       // Hop, cumulative
	BlocksWithheld  Opt[int64]   `db:"blocks_withheld"`   // Hop: senders that wait for a grant here
	DataFrames      Opt[int64]   `db:"data_frames"`       // Hop, cumulative, repeats included
	ControlFrames   Opt[int64]   `db:"control_frames"`    // Hop, cumulative
	BlocksInFlight  Count        `db:"blocks_in_flight"`  // Hop: announced to the next hop and not acknowledged by it
	BlocksCached    Count        `db:"blocks_cached"`     // Hop: passed on and kept
	BlocksUnacked   Count        `db:"blocks_unacked"`    // Hop, source: not acknowledged end to end
	MicroBlocks     Count        `db:"micro_blocks"`      // Hop, cumulative: sent with their BSYN
	GrantsWithheld  Count        `db:"grants_withheld"`   // Hop, cumulative: BSYNs not answered because another block had the grant
	Blocked         Count        `db:"blocked"`           // Hop, cumulative: BSYNs not answered because of backpressure or memory
	Tokens          Count        `db:"tokens"`            // Hop, cumulative: VBSYNs sent
	DatagramsSent   Count        `db:"datagrams_sent"`    // UDP, source, cumulative
	Refused         Count        `db:"datagrams_refused"` // UDP, source, cumulative: the queue was full
	Datagrams       Count        `db:"datagrams"`         // UDP, destination, cumulative, repeats not included
	DatagramsLost   Count        `db:"datagrams_lost"`    // UDP, destination, cumulative: sent before the latest one that came, and not there
	Duplicates      Count        `db:"duplicates"`        // UDP, destination, cumulative
	Reordered       Count        `db:"reordered"`         // UDP, destination, cumulative
}

// Message is what became of one message of a flow.
type Message struct {
	RunID   int64      `db:"run_id"`
	Flow    int        `db:"flow"`
	Message int        `db:"message"` // from 0, in the order in which they became ready
	Size    int64      `db:"size_bytes"`
	ReadyUs int64      `db:"ready_us"` // since the start of the run
	DelayUs Opt[int64] `db:"delay_us"` // until all of it was delivered; missing when it was not by the end of the run
}

// ACAll is the access category of the row that sums up a whole node.
const ACAll = "all"

// NodeStat are the MAC's counters of one node within the measured interval:
// one row per access category ("BK", "BE", "VI", "VO") and one for the whole
// node (ACAll), which alone carries the receive, busy and idle airtime.
type NodeStat struct {
	RunID             int64        `db:"run_id"`
	Node              int          `db:"node"`
	AC                string       `db:"ac"`
	AirtimeTxUs       Opt[int64]   `db:"airtime_tx_us"`
	AirtimeRxUs       Opt[int64]   `db:"airtime_rx_us"`   // locked on a frame, for this node or not
	AirtimeBusyUs     Opt[int64]   `db:"airtime_busy_us"` // channel sensed busy, neither of the above
	AirtimeIdleUs     Opt[int64]   `db:"airtime_idle_us"`
	Attempts          Opt[int64]   `db:"attempts"`
	Successes         Opt[int64]   `db:"successes"`
	Retries           Opt[int64]   `db:"retries"`
	Collisions        Opt[int64]   `db:"collisions"`          // receptions lost to interference
	InternalColl      Opt[int64]   `db:"internal_collisions"` // between the queues of the node
	DropsQueue        Opt[int64]   `db:"drops_queue"`
	DropsRetry        Opt[int64]   `db:"drops_retry"`
	DropsLoss         Opt[int64]   `db:"drops_loss"` // injected after the MAC
	QueueMeanPackets  Opt[float64] `db:"queue_mean_packets"`
	QueueMaxPackets   Opt[int64]   `db:"queue_max_packets"`
	QueueLimitPackets Opt[int64]   `db:"queue_limit_packets"`
}

// Pipe is one direction of a wired link in one run: what was asked of it, and
// what it did in the measured interval.
type Pipe struct {
	RunID     int64  `db:"run_id"`
	Pipe      int    `db:"pipe"` // of the topology
	Src       int    `db:"src"`
	Dst       int    `db:"dst"`
	Interface string `db:"interface"` // at src
	// What was asked for. A missing rate is unlimited (or a trace's: see
	// Setting), a missing queue has no limit of that kind.
	RateBps      Opt[int64]   `db:"rate_bps"`
	DelayUs      Opt[int64]   `db:"delay_us"` // one way, without jitter
	QueuePackets Opt[int64]   `db:"queue_limit_packets"`
	QueueBytes   Opt[int64]   `db:"queue_limit_bytes"`
	Loss         Opt[float64] `db:"loss_share"` // in the long run, queue drops apart
	Setting      string       `db:"setting"`    // the rest for people: jitter, reordering, trace, schedule
	// Counters of the measured interval, in packets where nothing else is said.
	Entered          Opt[int64]   `db:"entered_packets"`
	Delivered        Opt[int64]   `db:"delivered_packets"` // duplicates included
	DeliveredBytes   Opt[int64]   `db:"delivered_bytes"`   // of IP packets
	Lost             Opt[int64]   `db:"lost_packets"`      // by the modelled loss
	DropsQueue       Opt[int64]   `db:"drops_queue"`       // the queue was full
	Duplicates       Opt[int64]   `db:"duplicates"`
	HeldBack         Opt[int64]   `db:"held_back"` // delayed more than their successors, to reorder them
	BusyUs           Opt[int64]   `db:"busy_us"`   // the link carried something
	QueueMaxPackets  Opt[int64]   `db:"queue_max_packets"`
	QueueMeanPackets Opt[float64] `db:"queue_mean_packets"`
}

// Event is something noteworthy that happened during a run.
type Event struct {
	RunID int64      `db:"run_id"`
	Seq   int        `db:"seq"`  // order within the run; set by SaveRun
	TUs   Opt[int64] `db:"t_us"` // since the start of the run; missing outside of it
	Node  Opt[int64] `db:"node"`
	Flow  Opt[int64] `db:"flow"`
	Kind  string     `db:"kind"`
	Text  string     `db:"text"`
	Count int64      `db:"count"` // equal events folded into this one; 0 is taken as 1
}

// Artifact is a file that belongs to a run.
type Artifact struct {
	RunID  int64  `db:"run_id"`
	Kind   string `db:"kind"`
	Path   string `db:"path"`
	SHA256 string `db:"sha256"`
	Bytes  int64  `db:"bytes"`
}

// RunRecord is all that one run leaves behind. SaveRun fills in the run's id
// in every row.
type RunRecord struct {
	Run       Run
	Nodes     []Node
	Links     []Link
	Flows     []Flow
	Samples   []Sample
	Messages  []Message
	NodeStats []NodeStat
	Pipes     []Pipe
	Events    []Event
	Artifacts []Artifact
}

// RunKey names a run of a plan independently of its attempts.
type RunKey struct {
	Point      string // Params.Key()
	Repetition int
	Seed       Seed
}

// Key returns the key of the run.
func (r *Run) Key() RunKey { return RunKey{r.Params.Key(), r.Repetition, r.Seed} }
