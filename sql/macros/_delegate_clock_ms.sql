CREATE OR REPLACE MACRO _delegate_clock_ms() AS 0.001;

COMMENT ON MACRO _delegate_clock_ms IS 'Resolution of the times of delegated operators: XNNPACK reports full microseconds, rounded down.';
