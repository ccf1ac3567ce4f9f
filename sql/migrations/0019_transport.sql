-- How the device of a cell is reached: what tells simulated devices from emulated ones. It decides nothing about pooling.
ALTER TABLE cell ADD COLUMN transport VARCHAR;
