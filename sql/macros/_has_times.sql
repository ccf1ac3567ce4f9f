-- Whether times of a device mean anything: emulated devices have none, and simulated devices are stored as emulated.
-- For every view and query that compares or shows times.
CREATE OR REPLACE MACRO _has_times(emulated) AS emulated IS NOT TRUE;
