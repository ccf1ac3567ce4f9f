-- Names of the columns that identify the content of a pair, as in _cell_content.
CREATE OR REPLACE MACRO _pair_content() AS ['pair', 'pte_sha256', 'runner_sha256', 'serial', 'build'];
