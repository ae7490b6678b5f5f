-- The marks of transactions in the logs of databases.
CREATE TABLE logmarkhistory (
    database_name TEXT NOT NULL COLLATE NOCASE, mark_name TEXT NOT NULL,
    description TEXT, user_name TEXT NOT NULL, lsn INTEGER NOT NULL, mark_time TEXT NOT NULL
);
CREATE INDEX mark_of_database ON logmarkhistory (database_name, mark_name);
