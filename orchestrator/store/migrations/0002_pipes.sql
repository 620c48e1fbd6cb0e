-- Wired links: one row for each direction in each run. Counters are of the
-- measured interval.
CREATE TABLE pipes (
  run_id              INTEGER NOT NULL,
  pipe                INTEGER NOT NULL CHECK (pipe >= 0),
  src                 INTEGER NOT NULL,
  dst                 INTEGER NOT NULL CHECK (dst <> src),
  interface           TEXT    NOT NULL,
  rate_bps            INTEGER CHECK (rate_bps > 0),
  delay_us            INTEGER CHECK (delay_us >= 0),
  queue_limit_packets INTEGER CHECK (queue_limit_packets > 0),
  queue_limit_bytes   INTEGER CHECK (queue_limit_bytes > 0),
  loss_share          REAL CHECK (loss_share BETWEEN 0 AND 1),
  setting             TEXT    NOT NULL,
  entered_packets     INTEGER,
  delivered_packets   INTEGER,
  delivered_bytes     INTEGER,
  lost_packets        INTEGER,
  drops_queue         INTEGER,
  duplicates          INTEGER,
  held_back           INTEGER,
  busy_us             INTEGER,
  queue_max_packets   INTEGER,
  queue_mean_packets  REAL,
  PRIMARY KEY (run_id, pipe, src),
  FOREIGN KEY (run_id, src) REFERENCES nodes (run_id, node),
  FOREIGN KEY (run_id, dst) REFERENCES nodes (run_id, node)
) STRICT, WITHOUT ROWID;

-- Until now every node had a radio and routed.
ALTER TABLE nodes ADD COLUMN wired  INTEGER NOT NULL DEFAULT 0 CHECK (wired  IN (0, 1));
ALTER TABLE nodes ADD COLUMN bridge INTEGER NOT NULL DEFAULT 0 CHECK (bridge IN (0, 1));

-- The campaigns that one command carried out on several back ends share the id
-- of their first; NULL for a campaign that stands alone.
ALTER TABLE campaigns ADD COLUMN batch INTEGER REFERENCES campaigns (id);
