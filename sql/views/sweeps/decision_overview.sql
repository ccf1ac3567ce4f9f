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
    decision_id,
    kind,
    night,
    model,
    precision,
    variant,
    device,
    reason,
    decided_at,
    decided_by,
    revoked_at IS NULL AS in_force,
    revoked_reason,
    revoked_at,
    revoked_by
FROM decision
LEFT JOIN revocation USING (decision_id)
WHERE kind <> 'revocation';

COMMENT ON VIEW decision_overview IS 'Baselines that were reset, nights that were excluded and notes, revoked ones included. Figures stay as they are: verdicts do not compare the nights of resets and exclusions.';
COMMENT ON COLUMN decision_overview.decision_id IS 'Id of the decision: the name of its file beside the bundles, and the argument of `etfarm decisions revoke`.';
COMMENT ON COLUMN decision_overview.kind IS 'baseline_reset (older nights are not compared with this one and later ones), night_exclusion (the night is never compared and never part of a baseline) or note (changes no verdict).';
COMMENT ON COLUMN decision_overview.night IS 'The first night of the new baseline, the excluded night, or the night of a note; NULL for a note on no single night.';
COMMENT ON COLUMN decision_overview.model IS 'Only series of this model; NULL here and in the next three columns for every one.';
COMMENT ON COLUMN decision_overview.precision IS 'Only series of this precision.';
COMMENT ON COLUMN decision_overview.variant IS 'Only series of this variant.';
COMMENT ON COLUMN decision_overview.device IS 'Only sessions of this device.';
COMMENT ON COLUMN decision_overview.reason IS 'Why, in the words of the user; the text of a note.';
COMMENT ON COLUMN decision_overview.decided_at IS 'When it was recorded, UTC.';
COMMENT ON COLUMN decision_overview.decided_by IS 'User and host that recorded it.';
COMMENT ON COLUMN decision_overview.in_force IS 'Whether it counts, because it was not revoked.';
COMMENT ON COLUMN decision_overview.revoked_reason IS 'Why it was revoked; NULL here and below while it is in force.';
COMMENT ON COLUMN decision_overview.revoked_at IS 'When it was revoked, UTC.';
COMMENT ON COLUMN decision_overview.revoked_by IS 'User and host that revoked it.';
