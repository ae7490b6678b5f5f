-- The path of the first file of the database, as its backups say it: several databases can have one name. Failures
-- that an older version has recorded have none.
ALTER TABLE own_failure ADD COLUMN path TEXT;
