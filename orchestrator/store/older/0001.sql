-- What migration 0002 adds, laid over a file of format 1.
CREATE TEMP VIEW nodes AS SELECT *, 0 AS wired, 0 AS bridge FROM main.nodes;
CREATE TEMP VIEW campaigns AS SELECT *, NULL AS batch FROM main.campaigns;
CREATE TEMP VIEW pipes AS SELECT
  NULL AS run_id, NULL AS pipe, NULL AS src, NULL AS dst, NULL AS interface, NULL AS rate_bps, NULL AS delay_us,
  NULL AS queue_limit_packets, NULL AS queue_limit_bytes, NULL AS loss_share, NULL AS setting, NULL AS entered_packets,
  NULL AS delivered_packets, NULL AS delivered_bytes, NULL AS lost_packets, NULL AS drops_queue, NULL AS duplicates,
  NULL AS held_back, NULL AS busy_us, NULL AS queue_max_packets, NULL AS queue_mean_packets
  WHERE 0;
