-- The name of an operator as in the ETDump, without its number.
CREATE OR REPLACE MACRO _operator_name(operator, layout, data_type, microkernel) AS
    operator || CASE
        WHEN coalesce(layout, data_type) IS NULL THEN '' ELSE ' (' || concat_ws(', ', layout, data_type) || ')'
    END || coalesce(' ' || microkernel, '');
