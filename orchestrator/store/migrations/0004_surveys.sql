-- What was measured of the radio links before the first run of a campaign: one
-- survey for each network that its runs meet.
CREATE TABLE surveys (
  campaign_id INTEGER NOT NULL REFERENCES campaigns (id),
  survey      INTEGER NOT NULL CHECK (survey >= 1),
  network     TEXT    NOT NULL CHECK (network <> ''),
  repetition  INTEGER NOT NULL CHECK (repetition >= 1),
  params      TEXT    NOT NULL CHECK (json_valid(params)),
  started_utc TEXT    NOT NULL,
  nodes       TEXT    NOT NULL CHECK (json_valid(nodes)),
  mute        TEXT    NOT NULL CHECK (json_valid(mute)),
  probes      INTEGER NOT NULL CHECK (probes >= 1),
  period_s    REAL    NOT NULL CHECK (period_s > 0),
  size_bytes  INTEGER NOT NULL CHECK (size_bytes > 0),
  rate_bps    INTEGER NOT NULL CHECK (rate_bps > 0),
  PRIMARY KEY (campaign_id, survey),
  UNIQUE (campaign_id, network)
) STRICT, WITHOUT ROWID;

CREATE TABLE survey_links (
  campaign_id INTEGER NOT NULL,
  survey      INTEGER NOT NULL,
  src         INTEGER NOT NULL CHECK (src >= 0),
  dst         INTEGER NOT NULL CHECK (dst >= 0 AND dst <> src),
  received    INTEGER NOT NULL CHECK (received >= 0),
  lost        TEXT    CHECK (json_valid(lost)),
  PRIMARY KEY (campaign_id, survey, src, dst),
  FOREIGN KEY (campaign_id, survey) REFERENCES surveys (campaign_id, survey)
) STRICT, WITHOUT ROWID;
