-- What ran, as verdicts compare it: equal if model, inputs, runner, launcher and the number of executions are.
CREATE OR REPLACE MACRO _content(
    pte_sha256, inputs_sha256, runner_sha256, launcher, executions, warmup_executions
) AS concat_ws(
    ' ', pte_sha256, runner_sha256, inputs_sha256, executions || '-' || warmup_executions, launcher
);
