-- Reads: _delegate_cell, _delegate_share, _skipped_delegate, delegate_result, cell_interval, cell_output
-- Which delegate on which device, and what does it cost? One row per cell in timing of a model of which its sweep
-- states a delegate, and one for each delegate that failed or was skipped. Rows with equal compared_model, device,
-- precision and threads are compared; of several contents of one name, the one that was measured last is listed.
CREATE OR REPLACE VIEW delegate_comparison AS
WITH
listed AS (
    SELECT
        named.* EXCLUDE (reason),
        CASE WHEN cell_ms IS NULL THEN 'failed' ELSE 'measured' END AS outcome,
        CASE
            WHEN failed_sessions > 0 THEN named.reason
            WHEN same_as IS NOT NULL THEN replace(delegate[length(same_as) + 2:], '+', ' and ') || ' took nothing'
        END AS reason,
        interval_of.low_ms,
        interval_of.high_ms,
        snr_db,
        snr_fp32_db,
        top1_agreement,
        share.* EXCLUDE (model_id),
        CASE
            WHEN same_as IS NULL AND 'inaccurate' NOT IN (accuracy, xnnpack_accuracy) THEN against_xnnpack
        END AS against_xnnpack,
        against_fastest,
        against_fastest_of_model,
        -- A program with a time; it counts for the shortest if its outputs are not inaccurate.
        has_times AND same_as IS NULL AS is_timed,
        is_timed AND accuracy <> 'inaccurate' AS counts
    FROM _delegate_cell AS named
    LEFT JOIN cell_interval AS interval_of USING (cell_id)
    LEFT JOIN cell_output USING (cell_id)
    LEFT JOIN LATERAL (FROM _delegate_share AS of_model WHERE of_model.model_id = named.model_id) AS share ON TRUE
    LEFT JOIN
        LATERAL (
            SELECT
                any_value(result) FILTER (reference_id = xnnpack_id) AS against_xnnpack,
                any_value(result) FILTER (reference_id = fastest_id) AS against_fastest,
                any_value(result) FILTER (reference_id = fastest_of_model_id) AS against_fastest_of_model
            FROM delegate_result AS result
            WHERE result.cell_id = named.cell_id
        )
        ON TRUE
    UNION ALL BY NAME
    SELECT *, 'skipped' AS outcome FROM _skipped_delegate
),
-- The word for the shortest time is that for all others.
standing AS (
    SELECT
        *,
        CASE
            WHEN cell_id = fastest_id THEN
                _shortest_standing(
                    count(*) FILTER (is_timed) OVER (PARTITION BY fastest_id),
                    bool_or(cell_id <> fastest_id AND _delegate_undecided(against_fastest) IS NOT NULL)
                    FILTER (counts) OVER (PARTITION BY fastest_id)
                )
        END AS shortest,
        CASE
            WHEN cell_id = fastest_of_model_id THEN
                _shortest_standing(
                    count(*) FILTER (is_timed) OVER (PARTITION BY fastest_of_model_id),
                    bool_or(
                        cell_id <> fastest_of_model_id AND _delegate_undecided(against_fastest_of_model) IS NOT NULL
                    )
                    FILTER (counts) OVER (PARTITION BY fastest_of_model_id)
                )
        END AS shortest_of_model
    FROM listed
)
SELECT
    COLUMNS(_cell_name()),
    -- Name of the model without its delegate: what is compared.
    compared_model,
    -- What the case states: a delegate, a list by priority such as openvino+xnnpack, or portable for none; xnnpack is
    -- the default.
    delegate,
    -- measured; failed: no session succeeded; skipped: there was nothing to measure, see reason.
    outcome,
    -- In one sentence, why the newest of its sessions that did not succeed failed, why it was skipped, or why it is the
    -- same as another; NULL otherwise.
    reason,
    -- Milliseconds in one run, the time of its cell; NULL on emulated devices and if none was measured.
    CASE WHEN has_times THEN cell_ms END AS time_ms,
    -- Low end of the 95 % interval of the median of its sessions, in milliseconds; NULL with fewer than six of them.
    CASE WHEN has_times THEN low_ms END AS low_ms,
    -- High end of this interval.
    CASE WHEN has_times THEN high_ms END AS high_ms,
    -- Sessions of the cell that succeeded.
    coalesce(sessions, 0) AS sessions,
    -- Sessions that did not succeed; the first one of a device, which is discarded, does not count.
    coalesce(failed_sessions, 0) AS failed_sessions,
    -- Milliseconds of the same with XNNPACK, in the same sweep; NULL if it was not measured.
    xnnpack_ms,
    -- xnnpack_ms / time_ms: above 1 means faster than XNNPACK. NULL without one of both, if the outputs of one are
    -- inaccurate, for the same as another, and on emulated devices.
    1 / against_xnnpack.ratio AS speedup,
    -- Low end of its 95 % interval; NULL if a side has fewer than 5 sessions, or both were not interleaved.
    CASE WHEN against_xnnpack.later_s IS NULL THEN 1 / against_xnnpack.high END AS speedup_low,
    -- High end of its 95 % interval.
    CASE WHEN against_xnnpack.later_s IS NULL THEN 1 / against_xnnpack.low END AS speedup_high,
    -- Median milliseconds to load the model; of one with a cache on disk, that of the second start.
    CASE WHEN _has_times(emulated) THEN load_ms END AS load_ms,
    -- Median milliseconds to load the model at the first of two starts, which writes a cache; NULL without one.
    CASE WHEN _has_times(emulated) THEN first_load_ms END AS first_load_ms,
    -- Largest resident memory of the runner after its first run, mean of the middle half of its sessions.
    peak_memory_bytes,
    -- inaccurate, accurate, not judged or not compared, see cell_accuracy; NULL if it was not measured.
    CASE WHEN outcome = 'measured' THEN accuracy END AS accuracy,
    snr_db,
    snr_fp32_db,
    top1_agreement,
    -- What each backend took, the first by priority first: a list of {backend, operators, macs} with the number of
    -- operators and the multiply-accumulates of one execution; NULL if unknown.
    taken,
    -- Operators of the exported graph that backends took; NULL if unknown.
    delegated_operators,
    -- Operators that no backend took, without those on shapes and numbers; NULL if unknown.
    portable_operators,
    -- Part of the operators that backends took, 0 to 1, without operators on shapes and numbers; NULL if unknown.
    delegated_operators / nullif(delegated_operators + portable_operators, 0) AS operator_share,
    -- Part of the multiply-accumulates that backends took, 0 to 1; NULL if unknown.
    delegated_macs / nullif(delegated_macs + portable_macs, 0) AS mac_share,
    -- What its time means beside those of the same compared_model, device, precision and threads. fastest: the
    -- shortest of all whose outputs are not inaccurate, and all others are slower; shortest time: not all of them are;
    -- only one measured: all others failed, were skipped or are the same program, so it is compared with nothing;
    -- slower: its time differs from the shortest, by the rule of `etfarm compare`; not told apart: it does not; too
    -- few sessions to tell (2, needs 5): the side with fewer has 2; not interleaved: it was measured before or after
    -- the shortest, such as by a resumed sweep, so drift of the device may be the difference; same as openvino: the
    -- same program, of a list such as openvino+xnnpack of which XNNPACK took nothing; inaccurate, failed or skipped:
    -- it does not count; emulated: the device has no times.
    _delegate_standing(outcome, emulated, accuracy, same_as, shortest, against_fastest) AS standing,
    -- The same beside all precisions and threads of its compared_model and device.
    _delegate_standing(outcome, emulated, accuracy, same_as, shortest_of_model, against_fastest_of_model)
        AS standing_of_model,
    -- Seconds from the middle start of the sessions of the shortest to that of its own; NULL if both were interleaved.
    CASE WHEN accuracy <> 'inaccurate' AND same_as IS NULL THEN against_fastest.later_s END AS later_s,
    COLUMNS(_cell_content())
FROM standing;
