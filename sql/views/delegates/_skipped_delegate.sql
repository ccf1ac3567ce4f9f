-- Reads: skipped_model, cell
-- What was skipped of models of which a sweep states a delegate, unless a later start of the sweep could export it.
-- What was skipped on all devices is listed on those that measured the model, or on all if none did.
CREATE OR REPLACE VIEW _skipped_delegate AS
WITH
measured AS (SELECT DISTINCT sweep_id, device, regexp_replace(model, '@[^@]*$', '') AS base FROM cell),
measured_on AS (SELECT DISTINCT sweep_id, night, device, emulated FROM cell),
stating AS (
    SELECT sweep_id, regexp_replace(model, '@[^@]*$', '') AS base
    FROM (
        SELECT sweep_id, model FROM cell WHERE contains(model, 'delegate=')
        UNION ALL
        SELECT sweep_id, model FROM skipped_model
    )
    WHERE _delegate(model) <> 'xnnpack'
)
SELECT
    skipped_model.sweep_id,
    measured_on.night,
    measured_on.device,
    measured_on.emulated,
    skipped_model.model,
    skipped_model.precision,
    'timing' AS mode,
    _delegate(skipped_model.model) AS delegate,
    _without_delegate(skipped_model.model) AS compared_model,
    any_value(reason) AS reason
FROM skipped_model
JOIN measured_on
    ON measured_on.sweep_id = skipped_model.sweep_id
        AND measured_on.device = coalesce(skipped_model.device, measured_on.device)
WHERE (skipped_model.sweep_id, regexp_replace(skipped_model.model, '@[^@]*$', '')) IN (FROM stating)
    AND (
        skipped_model.device IS NOT NULL
        OR (skipped_model.sweep_id, measured_on.device, regexp_replace(skipped_model.model, '@[^@]*$', '')) IN (
            FROM measured
        )
        OR (skipped_model.sweep_id, regexp_replace(skipped_model.model, '@[^@]*$', '')) NOT IN (
            SELECT (sweep_id, base) FROM measured
        )
    )
    AND NOT EXISTS (
        SELECT 1
        FROM cell AS exported
        WHERE exported.sweep_id = skipped_model.sweep_id
            AND exported.device = measured_on.device
            AND exported.precision = skipped_model.precision
            AND _without_case(exported.model) = _without_case(skipped_model.model)
    )
GROUP BY ALL;
