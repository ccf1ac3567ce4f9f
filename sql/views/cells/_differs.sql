CREATE OR REPLACE VIEW _differs AS
WITH
compared AS (
    SELECT
        *,
        count(DISTINCT coalesce(seed::VARCHAR, '')) OVER same_name > 1 AS seed_differs,
        count(DISTINCT coalesce(pte_sha256::VARCHAR, '')) OVER same_name > 1 AS pte_sha256_differs,
        count(DISTINCT coalesce(runner_sha256::VARCHAR, '')) OVER same_name > 1 AS runner_sha256_differs,
        count(DISTINCT coalesce(serial::VARCHAR, '')) OVER same_name > 1 AS serial_differs,
        count(DISTINCT coalesce(build::VARCHAR, '')) OVER same_name > 1 AS build_differs,
        count(DISTINCT coalesce(os_version::VARCHAR, '')) OVER same_name > 1 AS os_version_differs,
        count(DISTINCT coalesce(device_model::VARCHAR, '')) OVER same_name > 1 AS device_model_differs,
        count(DISTINCT coalesce(soc::VARCHAR, '')) OVER same_name > 1 AS soc_differs,
        count(DISTINCT coalesce(sme2::VARCHAR, '')) OVER same_name > 1 AS sme2_differs,
        count(DISTINCT coalesce(emulated::VARCHAR, '')) OVER same_name > 1 AS emulated_differs,
        count(DISTINCT coalesce(platform::VARCHAR, '')) OVER same_name > 1 AS platform_differs,
        count(DISTINCT coalesce(executions::VARCHAR, '')) OVER same_name > 1 AS executions_differs,
        count(DISTINCT coalesce(warmup_executions::VARCHAR, '')) OVER same_name > 1 AS warmup_executions_differs
    FROM cell
    WHERE cell_id IN (
        SELECT cell_id FROM session_cell JOIN session USING (session_key) WHERE status = 'succeeded'
    )
    WINDOW same_name AS (PARTITION BY sweep_id, device, model, precision, variant, mode, threads)
)
SELECT
    cell_id,
    cell,
    nullif(concat_ws(
        ', ',
        CASE WHEN seed_differs THEN 'seed ' || coalesce(seed::VARCHAR, 'unknown') END,
        CASE WHEN pte_sha256_differs THEN 'pte ' || coalesce(left(pte_sha256, 8), 'unknown') END,
        CASE WHEN runner_sha256_differs THEN 'runner ' || coalesce(left(runner_sha256, 8), 'unknown') END,
        CASE WHEN serial_differs THEN 'serial ' || coalesce(serial::VARCHAR, 'unknown') END,
        CASE WHEN build_differs THEN 'build ' || coalesce(build::VARCHAR, 'unknown') END,
        CASE WHEN os_version_differs THEN 'OS ' || coalesce(os_version::VARCHAR, 'unknown') END,
        CASE WHEN device_model_differs THEN 'device model ' || coalesce(device_model::VARCHAR, 'unknown') END,
        CASE WHEN soc_differs THEN 'SoC ' || coalesce(soc::VARCHAR, 'unknown') END,
        CASE WHEN sme2_differs THEN 'SME2 of the device ' || coalesce(sme2::VARCHAR, 'unknown') END,
        CASE WHEN emulated_differs THEN 'emulated ' || coalesce(emulated::VARCHAR, 'unknown') END,
        CASE WHEN platform_differs THEN 'platform ' || coalesce(platform::VARCHAR, 'unknown') END,
        CASE WHEN executions_differs THEN 'executions ' || coalesce(executions::VARCHAR, 'unknown') END,
        CASE WHEN warmup_executions_differs THEN 'warm-up ' || coalesce(warmup_executions::VARCHAR, 'unknown') END
    ), '') AS differs
FROM compared;

COMMENT ON VIEW _differs IS 'What tells each cell with a result from the others of the same name in its sweep; NULL if there are none. Private: may change with any version.';
