-- What became of each message of the flows whose workload consists of messages.
CREATE TABLE messages (
  run_id     INTEGER NOT NULL,
  flow       INTEGER NOT NULL,
  message    INTEGER NOT NULL CHECK (message >= 0),
  size_bytes INTEGER NOT NULL CHECK (size_bytes > 0),
  ready_us   INTEGER NOT NULL,
  delay_us   INTEGER,
  PRIMARY KEY (run_id, flow, message),
  FOREIGN KEY (run_id, flow) REFERENCES flows (run_id, flow)
) STRICT, WITHOUT ROWID;

-- A web exchange is two flows. The counts and quantiles are of the messages that
-- became ready in the measured interval.
ALTER TABLE flows ADD COLUMN role               TEXT NOT NULL DEFAULT '' CHECK (role IN ('', 'responses', 'requests'));
ALTER TABLE flows ADD COLUMN peer               INTEGER;
ALTER TABLE flows ADD COLUMN dscp               INTEGER CHECK (dscp BETWEEN 0 AND 63);
ALTER TABLE flows ADD COLUMN messages           INTEGER CHECK (messages >= 0);
ALTER TABLE flows ADD COLUMN messages_delivered INTEGER CHECK (messages_delivered BETWEEN 0 AND messages);
ALTER TABLE flows ADD COLUMN delay_p50_us       INTEGER;
ALTER TABLE flows ADD COLUMN delay_p95_us       INTEGER;
ALTER TABLE flows ADD COLUMN delay_p99_us       INTEGER;
ALTER TABLE flows ADD COLUMN r_factor           REAL CHECK (r_factor BETWEEN 0 AND 100);
ALTER TABLE flows ADD COLUMN mos                REAL CHECK (mos BETWEEN 1 AND 5);

-- What Hop and UDP know over time.
ALTER TABLE samples ADD COLUMN blocks_in_flight  INTEGER;
ALTER TABLE samples ADD COLUMN blocks_cached     INTEGER;
ALTER TABLE samples ADD COLUMN blocks_unacked    INTEGER;
ALTER TABLE samples ADD COLUMN micro_blocks      INTEGER;
ALTER TABLE samples ADD COLUMN grants_withheld   INTEGER;
ALTER TABLE samples ADD COLUMN blocked           INTEGER;
ALTER TABLE samples ADD COLUMN tokens            INTEGER;
ALTER TABLE samples ADD COLUMN datagrams_sent    INTEGER;
ALTER TABLE samples ADD COLUMN datagrams_refused INTEGER;
ALTER TABLE samples ADD COLUMN datagrams         INTEGER;
ALTER TABLE samples ADD COLUMN datagrams_lost    INTEGER;
ALTER TABLE samples ADD COLUMN duplicates        INTEGER;
ALTER TABLE samples ADD COLUMN reordered         INTEGER;
