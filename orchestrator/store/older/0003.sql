-- What migration 0004 adds, laid over a file of format 3.
CREATE TEMP VIEW surveys AS SELECT
  NULL AS campaign_id, NULL AS survey, NULL AS network, NULL AS repetition, NULL AS params, NULL AS started_utc, NULL AS nodes,
  NULL AS mute, NULL AS probes, NULL AS period_s, NULL AS size_bytes, NULL AS rate_bps
  WHERE 0;
CREATE TEMP VIEW survey_links AS SELECT
  NULL AS campaign_id, NULL AS survey, NULL AS src, NULL AS dst, NULL AS received, NULL AS lost
  WHERE 0;
