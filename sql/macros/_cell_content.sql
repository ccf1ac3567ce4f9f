-- Names of the columns that identify the content of a cell by ids and hashes: views show them last.
CREATE OR REPLACE MACRO _cell_content() AS ['cell', 'pte_sha256', 'runner_sha256', 'serial', 'build'];
