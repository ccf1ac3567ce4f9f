-- Reads: cell, cell_time, cell_output, session_cell, session, skipped_model, _delegate_share
-- The cells in timing of models of which their sweep states a delegate, with the cells that each is compared with. Of
-- several contents of one name, the one that was measured last, as in `etfarm compare`; one without a result only if no
-- other has any. A list of which the later delegates took nothing is the same program as its first ones: it is
-- compared with nothing. Emulated devices have no times and nothing that is fastest.
CREATE OR REPLACE VIEW _delegate_cell AS
WITH
-- Few sweeps state delegates: the names of others are not taken apart.
stating AS (
    SELECT sweep_id, regexp_replace(model, '@[^@]*$', '') AS base
    FROM cell
    WHERE contains(model, 'delegate=') AND _delegate(model) <> 'xnnpack'
    UNION ALL
    SELECT sweep_id, regexp_replace(model, '@[^@]*$', '')
    FROM skipped_model
    WHERE _delegate(model) <> 'xnnpack'
),
named AS (
    SELECT
        *,
        _delegate(model) AS delegate,
        _without_delegate(model) AS compared_model,
        -- The same device, as in the content of a cell.
        json_array(
            device, emulated, serial, build, os_version, platform, device_model, soc, sme2, launcher, compared_model
        ) AS model_group
    FROM cell
    WHERE mode = 'timing'
        AND purpose IS NULL
        AND NOT _is_roof(model)
        AND (sweep_id, regexp_replace(model, '@[^@]*$', '')) IN (FROM stating)
),
-- The last attempt at each session: an earlier one that failed is superseded.
attempted AS (
    SELECT
        named.cell_id,
        session.*
    FROM named
    JOIN session_cell USING (cell_id)
    JOIN session USING (session_key, sweep_id)
    QUALIFY row_number() OVER (PARTITION BY sweep_id, cell_id, repetition ORDER BY attempt DESC, session_id) = 1
),
ended AS (
    SELECT
        cell_id,
        sweep_id,
        max(started_at) AS last_started_at,
        any_value(model_id) AS model_id,
        count(*) FILTER (status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session') AS failed_sessions,
        max_by(reason, (started_at, session_id)) FILTER (
            status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session'
        ) AS reason,
        median(load_ns) FILTER (status = 'succeeded') / 1e6 AS load_ms,
        median(first_load_ns) FILTER (status = 'succeeded') / 1e6 AS first_load_ms,
        _interquartile_mean(
            list(coalesce(model_peak_memory_bytes, peak_memory_bytes)) FILTER (
                status = 'succeeded' AND coalesce(model_peak_memory_bytes, peak_memory_bytes) IS NOT NULL
            )
        )::BIGINT AS peak_memory_bytes
    FROM attempted
    GROUP BY cell_id, sweep_id
),
newest AS (
    SELECT
        named.*,
        ended.* EXCLUDE (cell_id, sweep_id),
        cell_time.sessions,
        execute_ns / typical_runs / 1e6 AS cell_ms,
        coalesce(_accuracy(compared_sessions, judged_sessions, inaccurate_sessions), 'not compared') AS accuracy,
        _has_times(emulated) AND cell_ms IS NOT NULL AS has_times
    FROM named
    JOIN ended USING (cell_id, sweep_id)
    LEFT JOIN cell_time USING (cell_id)
    LEFT JOIN cell_output USING (cell_id)
    WHERE cell_ms IS NOT NULL OR failed_sessions > 0
    QUALIFY row_number() OVER (
            PARTITION BY sweep_id, model_group, precision, threads, variant, delegate
            ORDER BY cell_ms IS NULL, last_started_at DESC NULLS LAST, cell DESC
        ) = 1
),
taking AS (
    SELECT
        newest.*,
        {
            delegate: delegate,
            pte_sha256: pte_sha256,
            portable_operators: portable_operators,
            taken: list_filter(taken, LAMBDA each: each.operators > 0)
        } AS program
    FROM newest
    LEFT JOIN LATERAL (FROM _delegate_share AS of_model WHERE of_model.model_id = newest.model_id) ON TRUE
),
programs AS (
    SELECT
        *,
        list(program) FILTER (has_times) OVER (
            PARTITION BY sweep_id, model_group, precision, threads, variant
        ) AS measured
    FROM taking
),
distinguished AS (
    SELECT
        * EXCLUDE (program, measured),
        -- The first delegates of a list, if those after them took nothing.
        list_min(
            list_transform(
                list_filter(
                    measured,
                    LAMBDA other: has_times
                    AND starts_with(program.delegate, other.delegate || '+')
                    AND (
                        other.pte_sha256 = program.pte_sha256
                        OR (other.taken = program.taken AND other.portable_operators = program.portable_operators)
                    )
                ),
                LAMBDA other: other.delegate
            )
        ) AS same_as
    FROM programs
)
SELECT
    *,
    max(cell_id) FILTER (delegate = 'xnnpack' AND has_times) OVER (
        PARTITION BY sweep_id, model_group, precision, threads, variant
    ) AS xnnpack_id,
    max(cell_ms) FILTER (delegate = 'xnnpack' AND has_times) OVER (
        PARTITION BY sweep_id, model_group, precision, threads, variant
    ) AS xnnpack_ms,
    max(accuracy) FILTER (delegate = 'xnnpack' AND has_times) OVER (
        PARTITION BY sweep_id, model_group, precision, threads, variant
    ) AS xnnpack_accuracy,
    -- The one with the shortest time whose outputs are not inaccurate, of its precision and number of threads, and of
    -- the model.
    arg_min(cell_id, (cell_ms, cell)) FILTER (has_times AND accuracy <> 'inaccurate' AND same_as IS NULL) OVER (
        PARTITION BY sweep_id, model_group, precision, threads
    ) AS fastest_id,
    arg_min(cell_id, (cell_ms, cell)) FILTER (has_times AND accuracy <> 'inaccurate' AND same_as IS NULL) OVER (
        PARTITION BY sweep_id, model_group
    ) AS fastest_of_model_id
FROM distinguished;
