-- What the time of a cell would be if one thing about its operators changed (tasks/judge/predictions.py). Of each
-- series on each device there are those of the newest cell, and of the last cell before the program or runner changed,
-- which the next night answers (view what_if). A prediction is not made again unless sessions of its cell are added.
CREATE TABLE prediction (
    cell_id INTEGER NOT NULL,
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory.
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    -- delegated (portable operators were rewritten so that XNNPACK executes them) or peers (an operator came as
    -- near to the roof of the device as the others of its kind in the cell).
    kind VARCHAR NOT NULL,
    -- Names of the operators, the one with the most time first: without number, layout, data types and kernel if
    -- delegated, with the number as in the ETDump if peers.
    operators VARCHAR[] NOT NULL,
    -- Milliseconds of these operators in one run, as measured.
    operator_ms DOUBLE NOT NULL,
    -- The most that they may take in a later night to count as changed: 0 of portable ones.
    changed_ms DOUBLE NOT NULL,
    -- Milliseconds of one run, as measured.
    cell_ms DOUBLE NOT NULL,
    -- Milliseconds of one run after the change.
    predicted_ms DOUBLE NOT NULL,
    -- Low end of its interval, see docs/numbers.md.
    low_ms DOUBLE NOT NULL,
    -- High end of its interval.
    high_ms DOUBLE NOT NULL,
    -- What it is made from: an entry of the table of advice with the processor and day of its measured pairs, or the
    -- number of peers.
    basis VARCHAR NOT NULL,
    -- First 16 digits of the SHA-256 of the rule with its tables.
    rule VARCHAR NOT NULL
);
