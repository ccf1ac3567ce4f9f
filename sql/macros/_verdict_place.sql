-- The place of a verdict where the worst comes first, from 1.
CREATE OR REPLACE MACRO _verdict_place(verdict) AS
    list_position(
        [
            'regression', 'inaccurate', 'failed', 'suspected', 'device slower', 'device worse', 'unclear',
            'invalid environment',
            'improvement',
            'suspected improvement',
            'device faster',
            'device better',
            'new',
            'insufficient data',
            'no change'
        ],
        verdict
    );
