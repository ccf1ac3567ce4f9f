-- The mean of the middle half of a list of figures, as _in_middle_half chooses it; NULL if the list is empty or NULL.
CREATE OR REPLACE MACRO _interquartile_mean(figures) AS
    list_avg(
        list_sort(figures)[
            (len(figures) + 1) // 4 + 1:
            len(figures) - greatest((len(figures) + 1) // 4, (len(figures) = 2)::INTEGER)
        ]
    );
