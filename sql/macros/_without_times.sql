CREATE OR REPLACE MACRO _without_times(device) AS CASE WHEN starts_with(device, 'simulated') THEN 'simulated' ELSE 'emulated' END;

COMMENT ON MACRO _without_times IS 'What a device is whose times mean nothing: an inventory gives names that begin with simulated to simulated devices only.';
