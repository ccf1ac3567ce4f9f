-- Low and high end of the 95 % interval of the median of these figures, such as the times of the sessions of a cell:
-- that of tasks/bundle/robust_statistics.py; NULL for fewer than 6 figures and for more than 64.
CREATE OR REPLACE MACRO _median_interval(figures) AS
    -- The averages of all pairs of logarithms, each with itself too, in order; the rank counts from both ends.
    list_transform(
        [_interval_rank(len(figures)), -_interval_rank(len(figures))],
        place -> exp(
            list_sort(
                flatten(
                    list_transform(
                        figures,
                        (one, i) -> list_transform(figures[i:], other -> (ln(one) + ln(other)) / 2)
                    )
                )
            )[place]
        )
    );
