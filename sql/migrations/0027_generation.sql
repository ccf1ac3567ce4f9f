-- How many executions of a session go one token further each, and the first written token that differs from a reference.
ALTER TABLE model ADD COLUMN steps BIGINT;
ALTER TABLE accuracy ADD COLUMN first_difference BIGINT;
