-- The proofs by restoring: what was restored, to which state, how long that took, what was checked, and what came of
-- it (0: proven).
CREATE TABLE own_drill (
    drill_id INTEGER PRIMARY KEY AUTOINCREMENT,
    database_name TEXT NOT NULL COLLATE NOCASE, drill_date TEXT NOT NULL,
    restored_to TEXT, backup_sets TEXT NOT NULL, database_bytes INTEGER NOT NULL,
    restore_ms INTEGER, check_depth TEXT, check_ms INTEGER, query TEXT, answer TEXT,
    error_number INTEGER NOT NULL, message TEXT
);
CREATE INDEX drill_of_database ON own_drill (database_name, drill_date);
CREATE VIEW windlass_drill AS
    SELECT drill_id, database_name, drill_date, restored_to, backup_sets, database_bytes, restore_ms, check_depth,
           check_ms, query, answer, error_number, message
    FROM own_drill;
-- Which set was read back or restored, how deep and when.
CREATE VIEW windlass_verification AS
    SELECT v.verification_id, v.database_name, v.backup_set_uuid, b.type, b.backup_finish_date,
           v.verified AS verification_date, v.depth, v.error_number, v.media
    FROM own_verification v
    LEFT JOIN own_backupset b ON b.backup_set_id =
        (SELECT max(backup_set_id) FROM own_backupset s WHERE s.backup_set_uuid = v.backup_set_uuid);
