-- Leave the names to the rows that the next load brings.
DROP VIEW new_event;
DROP VIEW new_run;
