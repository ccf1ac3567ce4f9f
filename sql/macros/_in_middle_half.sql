-- Whether the value at this place, counted from 1 for the fastest, is one of the middle half of so many.
CREATE OR REPLACE MACRO _in_middle_half(place, total) AS
    -- A quarter is left out at each end, rounded to the nearest number; of two values the slower one. So one value in
    -- three may be anything, and a mean of what is left, unlike a median, is the sum of the means of its parts.
    place > (total + 1) // 4 AND place <= total - greatest((total + 1) // 4, (total = 2)::INTEGER);
