-- Names of the columns that name a cell: views show them first.
CREATE OR REPLACE MACRO _cell_name() AS
    ['sweep_id', 'night', 'device', 'emulated', 'model', 'precision', 'variant', 'mode', 'threads'];
