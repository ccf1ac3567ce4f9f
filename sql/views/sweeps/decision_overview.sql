-- Reads: decision
-- Baselines that were reset, nights that were excluded and notes, revoked ones included. Figures stay as they are:
-- verdicts do not compare the nights of resets and exclusions.
CREATE OR REPLACE VIEW decision_overview AS
WITH
revocation AS (
    SELECT
        revokes AS decision_id,
        reason AS revoked_reason,
        decided_at AS revoked_at,
        decided_by AS revoked_by
    FROM decision
    WHERE kind = 'revocation'
    QUALIFY row_number() OVER (PARTITION BY revokes ORDER BY decided_at, decision.decision_id) = 1
)
SELECT
    -- Id of the decision: the name of its file beside the bundles, and the argument of `etfarm decisions revoke`.
    decision_id,
    -- baseline_reset (older nights are not compared with this one and later ones), night_exclusion (the night is never
    -- compared and never part of a baseline), acceptance (of an incident: nights after the decision are compared with
    -- the figures since its onset), note (changes no verdict) or missing_file (recorded by the farm: the .pte file or
    -- runner of a good night is no longer stored, so suspected nights cannot be compared with it the same night).
    kind,
    -- The first night of the new baseline, the excluded night, the onset of the accepted incident, the good night, or
    -- the night of a note; NULL for a note on no single night.
    night,
    -- Only series of this model; NULL here and in the next three columns for every one.
    model,
    precision,
    variant,
    device,
    reason,
    decided_at,
    decided_by,
    -- Whether it counts, because it was not revoked.
    revoked_at IS NULL AS in_force,
    -- Why it was revoked; NULL while it is in force.
    revoked_reason,
    -- When it was revoked, UTC.
    revoked_at,
    -- User and host that revoked it.
    revoked_by
FROM decision
LEFT JOIN revocation USING (decision_id)
WHERE kind <> 'revocation';
