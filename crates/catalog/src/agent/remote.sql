-- What remote sessions have made or changed: it runs with their rights, whoever starts it.
CREATE TABLE own_remote_job (
    job_id TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE own_remote_procedure (
    database_name TEXT NOT NULL COLLATE NOCASE, name TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (database_name, name)
) WITHOUT ROWID;
