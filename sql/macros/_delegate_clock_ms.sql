-- Resolution of the times of delegated operators: XNNPACK reports full microseconds, rounded down.
CREATE OR REPLACE MACRO _delegate_clock_ms() AS 0.001;
