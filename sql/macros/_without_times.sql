CREATE OR REPLACE MACRO _without_times(transport) AS CASE WHEN transport = 'simulated' THEN 'simulated' ELSE 'emulated' END;

COMMENT ON MACRO _without_times IS 'What a device is whose times mean nothing.';
