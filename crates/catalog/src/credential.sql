-- Keys of object storage. A secret is sealed with the service key; no view shows it.
CREATE TABLE own_credential (
    credential_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    identity TEXT NOT NULL,
    secret BLOB NOT NULL,
    create_date TEXT NOT NULL,
    modify_date TEXT NOT NULL
);
INSERT INTO sqlite_sequence (name, seq) VALUES ('own_credential', 65535);
