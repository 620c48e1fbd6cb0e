-- What migrations 0003 and 0004 add, laid over a file of format 2.
CREATE TEMP VIEW messages AS SELECT
  NULL AS run_id, NULL AS flow, NULL AS message, NULL AS size_bytes, NULL AS ready_us, NULL AS delay_us
  WHERE 0;
CREATE TEMP VIEW flows AS SELECT *, '' AS role, NULL AS peer, NULL AS dscp, NULL AS messages, NULL AS messages_delivered,
  NULL AS delay_p50_us, NULL AS delay_p95_us, NULL AS delay_p99_us, NULL AS r_factor, NULL AS mos FROM main.flows;
CREATE TEMP VIEW samples AS SELECT *,
  NULL AS blocks_in_flight, NULL AS blocks_cached, NULL AS blocks_unacked, NULL AS micro_blocks, NULL AS grants_withheld,
  NULL AS blocked, NULL AS tokens, NULL AS datagrams_sent, NULL AS datagrams_refused, NULL AS datagrams, NULL AS datagrams_lost,
  NULL AS duplicates, NULL AS reordered
  FROM main.samples;
CREATE TEMP VIEW surveys AS SELECT
  NULL AS campaign_id, NULL AS survey, NULL AS network, NULL AS repetition, NULL AS params, NULL AS started_utc, NULL AS nodes,
  NULL AS mute, NULL AS probes, NULL AS period_s, NULL AS size_bytes, NULL AS rate_bps
  WHERE 0;
CREATE TEMP VIEW survey_links AS SELECT
  NULL AS campaign_id, NULL AS survey, NULL AS src, NULL AS dst, NULL AS received, NULL AS lost
  WHERE 0;
