-- How many executions of a session go one token further each, the perplexity on a text, and the first written token that differs from a reference.
ALTER TABLE model ADD COLUMN steps BIGINT;
ALTER TABLE model ADD COLUMN perplexity DOUBLE;
-- Columns of `session`, because a warehouse of an older farm changes `accuracy` in the same transaction.
ALTER TABLE session ADD COLUMN first_other_host BIGINT;
ALTER TABLE session ADD COLUMN first_other_eager BIGINT;
ALTER TABLE session ADD COLUMN first_other_fp32 BIGINT;
-- What a line `PyTorchObserver` in the log of ExecuTorch's own runner of language models states, and nothing of ours.
ALTER TABLE session ADD COLUMN reported_prompt_tokens BIGINT;
ALTER TABLE session ADD COLUMN reported_prompt_ms DOUBLE;
ALTER TABLE session ADD COLUMN reported_first_token_ms DOUBLE;
ALTER TABLE session ADD COLUMN reported_tokens BIGINT;
ALTER TABLE session ADD COLUMN reported_text_ms DOUBLE;
