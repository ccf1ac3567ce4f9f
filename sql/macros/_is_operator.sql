-- Whether a node is an operator; the time of all others is Unattributed.
CREATE OR REPLACE MACRO _is_operator(kind) AS kind NOT IN ('method', 'delegate_call', 'operator_call');
