-- How sessions were compared within two states of the device, or why they could not be; NULL if it has one.
ALTER TABLE comparison_result ADD COLUMN note VARCHAR;
