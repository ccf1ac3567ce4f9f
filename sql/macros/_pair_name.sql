-- Names of the columns that name a pair of cells that are equal but for SME2: views show them first.
CREATE OR REPLACE MACRO _pair_name() AS
    ['sweep_id', 'night', 'device', 'emulated', 'model', 'precision', 'mode', 'threads'];
