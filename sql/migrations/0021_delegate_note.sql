-- What to know about the times of the operators that delegates reported; NULL if they are simply times.
ALTER TABLE session ADD COLUMN delegate_note VARCHAR;
