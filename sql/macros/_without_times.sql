-- What a device is whose times mean nothing: emulated or simulated; NULL for any other device.
CREATE OR REPLACE MACRO _without_times(emulated, transport) AS
    CASE
        WHEN _has_times(emulated) THEN NULL
        WHEN transport = 'simulated' THEN 'simulated'
        ELSE 'emulated'
    END;
