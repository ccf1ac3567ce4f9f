-- Names of the columns with the content of a cell, which only ids and hashes tell: views show them last.
CREATE OR REPLACE MACRO _cell_content() AS ['cell', 'pte_sha256', 'runner_sha256', 'serial', 'build'];
