-- Reads: cell, _roof
-- What limits every model on a device: how fast it multiplies, and how fast it reads memory and caches. One row per
-- cell of the model `roof`, which a sweep with `roof: true` measures; none for emulated devices.
CREATE OR REPLACE VIEW device_roof AS
SELECT
    COLUMNS(_cell_name()),
    -- Multiply-accumulates per second, in 1e9, of a large matrix product: the median over the sessions of the fastest
    -- run of each.
    peak_gmac_per_s,
    -- Low end of its 95 % interval; NULL below six sessions.
    low_gmac_per_s,
    -- High end of its 95 % interval; NULL below six sessions.
    high_gmac_per_s,
    -- How fast data of several sizes is read, as a list of {bytes, gb_per_s}, the smallest first: small ones stay in a
    -- cache, the largest does not. Medians of the sessions; gb_per_s is 1e9 bytes per second.
    read_speeds,
    -- Speed of the largest size, in 1e9 bytes per second: that of the memory.
    read_speeds[-1].gb_per_s AS memory_gb_per_s,
    -- Median clock of the fastest core after the sessions, in MHz; NULL if unknown.
    clock_mhz,
    -- Sessions behind the row.
    sessions,
    COLUMNS(_cell_content())
FROM _roof
JOIN cell USING (cell_id);
