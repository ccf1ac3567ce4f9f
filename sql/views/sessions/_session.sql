-- Reads: session, session_cell, cell
-- Every session with its cell.
CREATE OR REPLACE VIEW _session AS
SELECT
    session.*,
    cell_id,
    cell,
    pair,
    subject,
    subject_pair,
    night,
    device,
    emulated,
    serial,
    build,
    model,
    precision,
    seed,
    pte_sha256,
    inputs_sha256,
    runner_sha256,
    runner_source,
    launcher
FROM session
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id);
