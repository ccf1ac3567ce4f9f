-- Whether the time of an operator is its call's, divided by a cost model (tasks/etdump/delegates.py marks its name).
CREATE OR REPLACE MACRO _is_estimate(operator) AS ends_with(operator, ' [estimate]');
