-- Logins, their membership in server roles, and the folders in which remote sessions may name files.
--
-- The hash of a password is a PHC string of Argon2id; no view shows it.
CREATE TABLE own_login (
    principal_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    sid BLOB NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    is_disabled INTEGER NOT NULL,
    default_database TEXT NOT NULL,
    create_date TEXT NOT NULL,
    modify_date TEXT NOT NULL
);
-- The numbers below are those of roles.
INSERT INTO sqlite_sequence (name, seq) VALUES ('own_login', 256);
CREATE TABLE own_login_role (
    principal_id INTEGER NOT NULL,
    role_id INTEGER NOT NULL,
    PRIMARY KEY (principal_id, role_id)
) WITHOUT ROWID;
CREATE TABLE own_remote_folder (
    folder TEXT PRIMARY KEY
) WITHOUT ROWID;
