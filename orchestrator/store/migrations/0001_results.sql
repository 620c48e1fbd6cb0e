-- Units are in the column names; _utc columns are RFC 3339 text in UTC.
-- Booleans are 0 and 1. Lists and maps are JSON text.

CREATE TABLE campaigns (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  name           TEXT    NOT NULL CHECK (name <> ''),
  title          TEXT    NOT NULL,
  backend        TEXT    NOT NULL CHECK (backend <> ''),
  seed           TEXT    NOT NULL,
  quick          INTEGER NOT NULL CHECK (quick IN (0, 1)),
  status         TEXT    NOT NULL CHECK (status IN ('running', 'complete', 'incomplete', 'interrupted', 'failed')),
  created_utc    TEXT    NOT NULL,
  finished_utc   TEXT,
  planned_runs   INTEGER NOT NULL CHECK (planned_runs >= 0),
  reference      TEXT    NOT NULL,
  file_text      TEXT    NOT NULL,
  file_sha256    TEXT    NOT NULL CHECK (length(file_sha256) = 64),
  hopbed_version TEXT    NOT NULL,
  host_facts     TEXT    NOT NULL CHECK (json_valid(host_facts)),
  note           TEXT    NOT NULL
) STRICT;

CREATE INDEX campaigns_by_file ON campaigns (file_sha256, backend);

CREATE TABLE runs (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign_id     INTEGER NOT NULL REFERENCES campaigns (id),
  backend         TEXT    NOT NULL CHECK (backend <> ''),
  seed            TEXT    NOT NULL,
  repetition      INTEGER NOT NULL CHECK (repetition >= 1),
  params          TEXT    NOT NULL CHECK (json_valid(params)),
  attempt         INTEGER NOT NULL CHECK (attempt >= 1),
  transport       TEXT    NOT NULL,
  quick           INTEGER NOT NULL CHECK (quick IN (0, 1)),
  warmup_s        REAL    NOT NULL CHECK (warmup_s >= 0),
  duration_s      REAL    NOT NULL CHECK (duration_s >= 0),
  sample_s        REAL             CHECK (sample_s > 0),
  wall_s          REAL    NOT NULL,
  started_utc     TEXT,
  status          TEXT    NOT NULL CHECK (status IN ('complete', 'invalid', 'failed', 'interrupted')),
  valid           INTEGER NOT NULL GENERATED ALWAYS AS (status = 'complete') STORED,
  invalid_reasons TEXT    NOT NULL CHECK (json_valid(invalid_reasons)),
  warnings        TEXT    NOT NULL CHECK (json_valid(warnings)),
  error           TEXT    NOT NULL,
  trace_hash      TEXT    NOT NULL,
  lateness_p50_us REAL,
  lateness_p99_us REAL,
  lateness_max_us REAL,
  late_share      REAL,
  stall_max_us    REAL,
  events_fired    INTEGER,
  cpu_s           REAL,
  agent_cpu_s     REAL,
  steal_s         REAL,
  priority        TEXT    NOT NULL,
  facts           TEXT    NOT NULL CHECK (json_valid(facts)),
  UNIQUE (campaign_id, params, repetition, seed, attempt),
  -- What is invalid says why, and what has a reason is not complete.
  CHECK (status <> 'invalid' OR invalid_reasons <> '[]'),
  CHECK (status <> 'complete' OR (invalid_reasons = '[]' AND error = '')),
  CHECK (status <> 'failed' OR error <> '')
) STRICT;

-- One valid result for each run of the plan: two processes that resume the
-- same campaign cannot both add theirs.
CREATE UNIQUE INDEX runs_one_complete ON runs (campaign_id, params, repetition, seed) WHERE status = 'complete';

CREATE TABLE nodes (
  run_id  INTEGER NOT NULL REFERENCES runs (id),
  node    INTEGER NOT NULL CHECK (node >= 0),
  name    TEXT    NOT NULL,
  address TEXT    NOT NULL,
  x_m     REAL,
  y_m     REAL,
  facts   TEXT    NOT NULL CHECK (json_valid(facts)),
  PRIMARY KEY (run_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
  run_id       INTEGER NOT NULL,
  src          INTEGER NOT NULL,
  dst          INTEGER NOT NULL,
  delivery     REAL CHECK (delivery BETWEEN 0 AND 1),
  snr_db       REAL,
  rx_power_dbm REAL,
  distance_m   REAL,
  etx          REAL,
  routed       INTEGER NOT NULL CHECK (routed IN (0, 1)),
  measured     TEXT    NOT NULL,
  PRIMARY KEY (run_id, src, dst),
  FOREIGN KEY (run_id, src) REFERENCES nodes (run_id, node),
  FOREIGN KEY (run_id, dst) REFERENCES nodes (run_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE flows (
  run_id         INTEGER NOT NULL,
  flow           INTEGER NOT NULL CHECK (flow >= 0),
  transport      TEXT    NOT NULL CHECK (transport <> ''),
  workload       TEXT    NOT NULL,
  src            INTEGER NOT NULL,
  dst            INTEGER NOT NULL,
  hops           INTEGER NOT NULL CHECK (hops >= 0),
  path           TEXT    NOT NULL CHECK (json_valid(path)),
  start_s        REAL    NOT NULL,
  stop_s         REAL    NOT NULL,
  size_bytes     INTEGER,
  bytes          INTEGER NOT NULL CHECK (bytes >= 0),
  goodput_bps    REAL CHECK (goodput_bps >= 0),
  setup_s        REAL,
  completion_s   REAL,
  cc             TEXT    NOT NULL,
  sent_bytes     INTEGER,
  retrans_bytes  INTEGER,
  timeouts       INTEGER,
  blocks         INTEGER,
  corrupt_blocks INTEGER,
  counters       TEXT    NOT NULL CHECK (json_valid(counters)),
  status         TEXT    NOT NULL CHECK (status IN ('ok', 'timeout', 'failed')),
  error          TEXT    NOT NULL,
  PRIMARY KEY (run_id, flow),
  FOREIGN KEY (run_id, src) REFERENCES nodes (run_id, node),
  FOREIGN KEY (run_id, dst) REFERENCES nodes (run_id, node),
  CHECK ((goodput_bps IS NULL) = (status = 'failed'))
) STRICT, WITHOUT ROWID;

CREATE TABLE samples (
  run_id            INTEGER NOT NULL,
  flow              INTEGER NOT NULL,
  side              TEXT    NOT NULL CHECK (side IN ('src', 'dst', 'relay')),
  node              INTEGER NOT NULL,
  t_us              INTEGER NOT NULL,
  delivered_bytes   INTEGER,
  sent_bytes        INTEGER,
  retrans_bytes     INTEGER,
  retrans_segments  INTEGER,
  acked_bytes       INTEGER,
  not_sent_bytes    INTEGER,
  held_bytes        INTEGER,
  cwnd_packets      REAL,
  ssthresh_packets  REAL,
  in_flight_packets REAL,
  lost_packets      INTEGER,
  srtt_us           INTEGER,
  min_rtt_us        INTEGER,
  rttvar_us         INTEGER,
  rto_us            INTEGER,
  delivery_rate_bps INTEGER,
  ca_state          TEXT,
  blocks_held       INTEGER,
  blocks_done       INTEGER,
  blocks_withheld   INTEGER,
  data_frames       INTEGER,
  control_frames    INTEGER,
  PRIMARY KEY (run_id, flow, side, node, t_us),
  FOREIGN KEY (run_id, flow) REFERENCES flows (run_id, flow)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_stats (
  run_id              INTEGER NOT NULL,
  node                INTEGER NOT NULL,
  ac                  TEXT    NOT NULL CHECK (ac IN ('BK', 'BE', 'VI', 'VO', 'all')),
  airtime_tx_us       INTEGER,
  airtime_rx_us       INTEGER,
  airtime_busy_us     INTEGER,
  airtime_idle_us     INTEGER,
  attempts            INTEGER,
  successes           INTEGER,
  retries             INTEGER,
  collisions          INTEGER,
  internal_collisions INTEGER,
  drops_queue         INTEGER,
  drops_retry         INTEGER,
  drops_loss          INTEGER,
  queue_mean_packets  REAL,
  queue_max_packets   INTEGER,
  queue_limit_packets INTEGER,
  PRIMARY KEY (run_id, node, ac),
  FOREIGN KEY (run_id, node) REFERENCES nodes (run_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  run_id INTEGER NOT NULL REFERENCES runs (id),
  seq    INTEGER NOT NULL,
  t_us   INTEGER,
  node   INTEGER,
  flow   INTEGER,
  kind   TEXT    NOT NULL CHECK (kind <> ''),
  text   TEXT    NOT NULL,
  count  INTEGER NOT NULL CHECK (count >= 1),
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
  run_id INTEGER NOT NULL REFERENCES runs (id),
  kind   TEXT    NOT NULL,
  path   TEXT    NOT NULL,
  sha256 TEXT    NOT NULL,
  bytes  INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (run_id, path)
) STRICT, WITHOUT ROWID;
