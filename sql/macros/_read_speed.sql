-- How fast a device reads so many bytes, by its measured speeds, the smallest size first: that of the next larger size,
-- or of the largest.
CREATE OR REPLACE MACRO _read_speed(speeds, size_bytes) AS
    coalesce(list_filter(speeds, LAMBDA each: each.bytes >= size_bytes)[1], speeds[-1]).gb_per_s;
