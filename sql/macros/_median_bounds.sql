-- Low and high end of the 95 % interval of the median, from the order of the figures alone; NULL of fewer than six.
CREATE OR REPLACE MACRO _median_bounds(figures) AS
    CASE WHEN len(figures) >= 6 THEN {
        low: list_sort(figures)[((len(figures) - 1 - 1.96 * sqrt(len(figures))) // 2 + 1)::INTEGER],
        high: list_sort(figures)[-((len(figures) - 1 - 1.96 * sqrt(len(figures))) // 2 + 1)::INTEGER]
    } END;
