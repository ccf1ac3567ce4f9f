CREATE OR REPLACE MACRO _content(pte_sha256, runner_sha256) AS coalesce(pte_sha256, '') || ' ' || coalesce(runner_sha256, '');

COMMENT ON MACRO _content IS 'What ran, as verdicts compare it: equal if model and runner are.';
