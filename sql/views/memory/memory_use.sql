-- Reads: _timing_session, _cell, model
-- Who owns the memory of the runner, by cell and moment: means of its sessions. The parts of a moment add up to what
-- the system reported. What the program plans or contains is subtracted first; the rest is what was measured and has no
-- other owner. Sessions of a runner that reports no memory before the load are not in the view.
CREATE OR REPLACE VIEW memory_use AS
WITH
reported AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        count(*) AS memory_sessions,
        any_value(model.planned_bytes) AS planned,
        -- Those of a mapped program are among its pages, also where no session lists these, such as on macOS.
        any_value(CASE WHEN NOT contains(_runtime(model.name), 'load=mmap') THEN model.constant_bytes END) AS constants,
        any_value(model.delegate_bytes) AS delegate_data,
        avg(start_anonymous_bytes)::BIGINT AS start_anonymous,
        avg(start_file_bytes)::BIGINT AS start_file,
        avg(load_anonymous_bytes + load_swapped_bytes)::BIGINT AS load_anonymous,
        avg(load_file_bytes)::BIGINT AS load_file,
        avg(model_anonymous_bytes + model_swapped_bytes)::BIGINT AS run_anonymous,
        avg(model_file_bytes)::BIGINT AS run_file,
        avg(end_anonymous_bytes + end_swapped_bytes)::BIGINT AS end_anonymous,
        avg(end_file_bytes)::BIGINT AS end_file,
        avg(
            greatest(model_peak_memory_bytes, model_anonymous_bytes + model_swapped_bytes + model_file_bytes)
        )::BIGINT AS peak,
        -- The list of mappings is one session's.
        coalesce(
            max(
                list_sum(
                    list_transform(
                        list_filter(
                            from_json(mappings, '[{"name": "VARCHAR", "resident_bytes": "BIGINT"}]'),
                            LAMBDA each: each.name = 'program'
                        ),
                        LAMBDA each: each.resident_bytes
                    )
                )
            ),
            0
        )::BIGINT AS program_mapped
    FROM _timing_session
    JOIN model USING (model_id)
    WHERE start_anonymous_bytes IS NOT NULL AND load_anonymous_bytes IS NOT NULL AND model_anonymous_bytes IS NOT NULL
    GROUP BY cell_id, cell, sweep_id
),
moments AS (
    SELECT
        reported.*,
        unnest(
            [
                { place: 1, moment: 'load', anonymous: load_anonymous, file: load_file, beyond: 0 },
                { place: 2, moment: 'first run', anonymous: run_anonymous, file: run_file, beyond: 0 },
                {
                    place: 3,
                    moment: 'peak',
                    anonymous: run_anonymous,
                    file: run_file,
                    -- Rounded means of the parts may exceed the rounded mean of their sum.
                    beyond: greatest(0, peak - run_anonymous - run_file)
                },
                { place: 4, moment: 'end', anonymous: end_anonymous, file: end_file, beyond: 0 }
            ],
            recursive := TRUE
        )
    FROM reported
),
-- Each owner takes what it can explain of what those before it left.
attributed AS (
    SELECT
        *,
        least(start_anonymous, anonymous) AS runner,
        least(coalesce(planned, 0), anonymous - runner) AS arenas,
        least(
            CASE WHEN program_mapped = 0 THEN coalesce(constants, 0) ELSE 0 END, anonymous - runner - arenas
        ) AS constants_read,
        anonymous - runner - arenas - constants_read AS others,
        CASE
            WHEN delegate_data > 0
                THEN greatest(0, load_anonymous - start_anonymous - coalesce(planned, 0) - constants_read)
            ELSE 0
        END AS packed_at_load,
        least(packed_at_load, others) AS packed,
        CASE
            WHEN planned IS NULL OR place = 1 THEN 0
            ELSE least(greatest(0, run_anonymous - greatest(load_anonymous, start_anonymous)), others - packed)
        END AS first_run,
        CASE
            WHEN place = 4 THEN least(greatest(0, end_anonymous - run_anonymous), others - packed - first_run) ELSE 0
        END AS recorded,
        least(program_mapped, greatest(0, file - start_file)) AS program_pages
    FROM moments
)
SELECT
    COLUMNS(_cell_name()),
    -- load (the method is loaded), first run (after it), peak (the largest until then) or end (after the last run).
    moment,
    -- start-up and libraries (before the load, and mapped pages of libraries); program file (its mapped pages); planned
    -- arenas; constants (read into memory); packed weights (what the load adds beyond these: weights as delegates store
    -- them, and their graphs); first run (what it adds: workspaces of delegates, temporary memory of kernels);
    -- temporary (at the peak only); recording (of the ETDump, at the end only); or unattributed.
    part.owner,
    -- Bytes of this owner.
    part.bytes,
    -- Of them, pages of mapped files, which the system can drop and read again.
    part.file_bytes,
    -- Bytes of all owners at this moment: what the system reported, resident and swapped out.
    anonymous + file + beyond AS total_bytes,
    -- Bytes that the program plans for the method; NULL if it was not read.
    planned AS planned_bytes,
    -- Bytes that the program and its files contain for delegates; with a mapped program they are in memory beside the
    -- packed weights.
    delegate_data AS delegate_bytes,
    -- Sessions behind the row.
    memory_sessions AS sessions,
    -- Place of the moment in their order, from 1.
    place AS moment_place,
    -- Place of the owner in the order of the list above, from 1.
    part.place AS owner_place,
    runner_source,
    COLUMNS(_cell_content())
FROM attributed
JOIN _cell USING (cell_id, cell, sweep_id)
CROSS JOIN LATERAL (
    SELECT unnest(
        [
            {
                place: 1,
                owner: 'start-up and libraries',
                bytes: runner + file - program_pages,
                file_bytes: file - program_pages
            },
            { place: 2, owner: 'program file', bytes: program_pages, file_bytes: program_pages },
            { place: 3, owner: 'planned arenas', bytes: arenas, file_bytes: 0 },
            { place: 4, owner: 'constants', bytes: constants_read, file_bytes: 0 },
            { place: 5, owner: 'packed weights', bytes: packed, file_bytes: 0 },
            { place: 6, owner: 'first run', bytes: first_run, file_bytes: 0 },
            { place: 7, owner: 'temporary', bytes: beyond, file_bytes: 0 },
            { place: 8, owner: 'recording', bytes: recorded, file_bytes: 0 },
            { place: 9, owner: 'unattributed', bytes: others - packed - first_run - recorded, file_bytes: 0 }
        ]
    ) AS part
);
