-- The tables of a catalog, and the views of the history. Those of sys are in instance/src/query/views.
--
-- Tables that scripts may see carry SQL Server's names and columns; the others begin with own_.
CREATE TABLE own_database (
    database_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    logical_name TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    family_guid TEXT,
    state INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    create_date TEXT NOT NULL,
    base_set_guid TEXT,
    base_lsn,
    base_date TEXT,
    log_path TEXT,
    is_as_is INTEGER NOT NULL,
    -- Which identity the files that were made for it carry.
    made_for TEXT NOT NULL
);
-- Where the catalog is, to tell a copy of the instance's folder from the original.
CREATE TABLE own_home (
    home_id INTEGER PRIMARY KEY CHECK (home_id = 1),
    path TEXT NOT NULL,
    file_number INTEGER NOT NULL
);
CREATE TABLE own_drive (
    letter TEXT PRIMARY KEY,
    folder TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE own_restore_folder (
    folder TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE own_backupmediaset (
    media_set_id INTEGER PRIMARY KEY AUTOINCREMENT, media_uuid TEXT UNIQUE,
    media_family_count INTEGER, name TEXT, description TEXT, software_name TEXT,
    software_vendor_id INTEGER, MTF_major_version INTEGER, mirror_count INTEGER,
    is_password_protected INTEGER, is_compressed INTEGER, is_encrypted INTEGER
);
CREATE TABLE own_backupmediafamily (
    media_set_id INTEGER NOT NULL REFERENCES own_backupmediaset, family_sequence_number INTEGER NOT NULL,
    media_family_id TEXT, media_count INTEGER NOT NULL, logical_device_name TEXT,
    physical_device_name TEXT, device_type INTEGER, physical_block_size INTEGER,
    mirror INTEGER NOT NULL,
    PRIMARY KEY (media_set_id, family_sequence_number, media_count, mirror)
);
CREATE TABLE own_backupset (
    backup_set_id INTEGER PRIMARY KEY AUTOINCREMENT, backup_set_uuid TEXT NOT NULL,
    media_set_id INTEGER NOT NULL REFERENCES own_backupmediaset,
    first_family_number INTEGER, first_media_number INTEGER,
    last_family_number INTEGER, last_media_number INTEGER,
    catalog_family_number INTEGER, catalog_media_number INTEGER,
    position INTEGER, expiration_date TEXT, software_vendor_id INTEGER, name TEXT,
    description TEXT, user_name TEXT, software_major_version INTEGER,
    software_minor_version INTEGER, software_build_version INTEGER, time_zone INTEGER,
    mtf_minor_version INTEGER, first_lsn, last_lsn, checkpoint_lsn, database_backup_lsn,
    database_creation_date TEXT, backup_start_date TEXT, backup_finish_date TEXT, type TEXT,
    sort_order INTEGER, code_page INTEGER, compatibility_level INTEGER, database_version INTEGER,
    backup_size INTEGER, database_name TEXT, server_name TEXT, machine_name TEXT, flags INTEGER,
    unicode_locale INTEGER, unicode_compare_style INTEGER, collation_name TEXT,
    is_password_protected INTEGER, recovery_model TEXT, has_bulk_logged_data INTEGER,
    is_snapshot INTEGER, is_readonly INTEGER, is_single_user INTEGER,
    has_backup_checksums INTEGER, is_damaged INTEGER, begins_log_chain INTEGER,
    has_incomplete_metadata INTEGER, is_force_offline INTEGER, is_copy_only INTEGER,
    first_recovery_fork_guid TEXT, last_recovery_fork_guid TEXT, fork_point_lsn,
    database_guid TEXT, family_guid TEXT, differential_base_lsn, differential_base_guid TEXT,
    compressed_backup_size INTEGER, key_algorithm TEXT, encryptor_thumbprint BLOB,
    encryptor_type TEXT, last_valid_restore_time TEXT, compression_algorithm TEXT,
    compression_level TEXT,
    -- What SQL Server does not have. A run to NUL is discarded: nothing of it was kept.
    duration_ms INTEGER, is_discarded INTEGER NOT NULL DEFAULT 0,
    -- When the media were first found gone, and what was found.
    missing_since TEXT, missing_reason TEXT,
    -- The history of it was deleted, but differentials count from it.
    is_forgotten INTEGER NOT NULL DEFAULT 0,
    -- The database was not registered: its path was given.
    is_by_path INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX backupset_uuid ON own_backupset (backup_set_uuid);
CREATE INDEX backupset_on_media ON own_backupset (media_set_id, position);
CREATE INDEX backupset_of_database ON own_backupset (database_name, backup_finish_date);
CREATE TABLE own_backupfile (
    backup_set_id INTEGER NOT NULL REFERENCES own_backupset, first_family_number INTEGER,
    first_media_number INTEGER, filegroup_name TEXT, page_size INTEGER,
    file_number INTEGER NOT NULL, backed_up_page_count INTEGER, file_type TEXT,
    source_file_block_size INTEGER, file_size INTEGER, logical_name TEXT, physical_drive TEXT,
    physical_name TEXT, state INTEGER, state_desc TEXT, create_lsn, drop_lsn, file_guid TEXT,
    read_only_lsn, read_write_lsn, differential_base_lsn, differential_base_guid TEXT,
    backup_size INTEGER, filegroup_guid TEXT, is_readonly INTEGER, is_present INTEGER,
    PRIMARY KEY (backup_set_id, file_number)
);
-- What each medium must hold for a set: at least so many bytes, and where its file system is mounted.
CREATE TABLE own_set_medium (
    backup_set_id INTEGER NOT NULL REFERENCES own_backupset,
    family_sequence_number INTEGER NOT NULL, mirror INTEGER NOT NULL,
    end_bytes INTEGER NOT NULL, mount_point TEXT,
    PRIMARY KEY (backup_set_id, family_sequence_number, mirror)
) WITHOUT ROWID;
-- The backups that failed, with the number of their first error.
CREATE TABLE own_failure (
    failure_id INTEGER PRIMARY KEY AUTOINCREMENT,
    database_name TEXT NOT NULL COLLATE NOCASE, operation TEXT NOT NULL,
    failed TEXT NOT NULL, error_number INTEGER NOT NULL, message TEXT NOT NULL,
    -- The last set that the history had then: what finished later has a greater number.
    after_set_id INTEGER NOT NULL,
    is_by_path INTEGER NOT NULL
);
CREATE INDEX failure_of_database ON own_failure (database_name, failed);
-- The sets that were read back: which, when, how deep, and what came of it (0: valid). `media` says which
-- files were read, and in which state: it is compared as a whole.
CREATE TABLE own_verification (
    verification_id INTEGER PRIMARY KEY AUTOINCREMENT,
    backup_set_uuid TEXT NOT NULL, database_name TEXT NOT NULL COLLATE NOCASE,
    verified TEXT NOT NULL, depth TEXT NOT NULL, error_number INTEGER NOT NULL,
    media TEXT NOT NULL
);
CREATE INDEX verification_of_set ON own_verification (backup_set_uuid, verified);
-- The damage that is known of databases, by the path of their first file: what found it (check, page, restore),
-- how deep that looks (quick, full), and the page.
CREATE TABLE own_damage (
    damage_id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL, database_name TEXT NOT NULL COLLATE NOCASE,
    found TEXT NOT NULL, source TEXT NOT NULL, depth TEXT NOT NULL,
    error_number INTEGER NOT NULL, message TEXT NOT NULL,
    file_id INTEGER, page_id INTEGER
);
CREATE INDEX damage_at ON own_damage (path);
CREATE TABLE own_backupfilegroup (
    backup_set_id INTEGER NOT NULL REFERENCES own_backupset, name TEXT, filegroup_id INTEGER NOT NULL,
    filegroup_guid TEXT, type TEXT, type_desc TEXT, is_default INTEGER, is_readonly INTEGER,
    log_filegroup_guid TEXT,
    PRIMARY KEY (backup_set_id, filegroup_id)
);
CREATE TABLE restorehistory (
    restore_history_id INTEGER PRIMARY KEY AUTOINCREMENT, restore_date TEXT,
    destination_database_name TEXT, user_name TEXT,
    backup_set_id INTEGER NOT NULL REFERENCES own_backupset, restore_type TEXT, "replace" INTEGER,
    recovery INTEGER, restart INTEGER, stop_at TEXT, device_count INTEGER,
    stop_at_mark_name TEXT, stop_before INTEGER
);
CREATE TABLE restorefile (
    restore_history_id INTEGER NOT NULL REFERENCES restorehistory, file_number INTEGER,
    destination_phys_drive TEXT, destination_phys_name TEXT
);
CREATE TABLE restorefilegroup (
    restore_history_id INTEGER NOT NULL REFERENCES restorehistory, filegroup_name TEXT
);
CREATE TABLE suspect_pages (
    database_id INTEGER NOT NULL, file_id INTEGER NOT NULL, page_id INTEGER NOT NULL,
    event_type INTEGER NOT NULL, error_count INTEGER NOT NULL, last_update_date TEXT NOT NULL
);
-- `installed` is what RECONFIGURE has made of `value`; `value_in_use` follows at once for options that
-- are dynamic and at the next opening of the instance for the others.
CREATE TABLE own_configuration (
    configuration_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    value INTEGER NOT NULL,
    minimum INTEGER NOT NULL,
    maximum INTEGER NOT NULL,
    value_in_use INTEGER NOT NULL,
    installed INTEGER NOT NULL,
    description TEXT NOT NULL,
    is_dynamic INTEGER NOT NULL,
    is_advanced INTEGER NOT NULL
);
CREATE TABLE own_backup_device (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    physical_name TEXT NOT NULL
) WITHOUT ROWID;
-- Kept by the name of its database: the files of databases are not ours to write to.
CREATE TABLE own_procedure (
    object_id INTEGER PRIMARY KEY,
    database_name TEXT NOT NULL COLLATE NOCASE,
    name TEXT NOT NULL COLLATE NOCASE,
    definition TEXT NOT NULL,
    is_recompiled INTEGER NOT NULL,
    create_date TEXT NOT NULL,
    modify_date TEXT NOT NULL,
    UNIQUE (database_name, name)
);
CREATE TABLE own_copy (
    copy_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    overwrite INTEGER NOT NULL,
    queued TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt TEXT NOT NULL,
    last_error TEXT
);
-- Sizes are numeric(20,0) on SQL Server, so that dividing them keeps the fraction: the views give them
-- as floating numbers.
CREATE VIEW backupset AS
    SELECT backup_set_id, backup_set_uuid, media_set_id, first_family_number, first_media_number,
           last_family_number, last_media_number, catalog_family_number, catalog_media_number,
           position, expiration_date, software_vendor_id, name, description, user_name,
           software_major_version, software_minor_version, software_build_version, time_zone,
           mtf_minor_version, first_lsn, last_lsn, checkpoint_lsn, database_backup_lsn,
           database_creation_date, backup_start_date, backup_finish_date, type, sort_order,
           code_page, compatibility_level, database_version, CAST(backup_size AS REAL) AS
           backup_size, database_name, server_name, machine_name, flags, unicode_locale,
           unicode_compare_style, collation_name, is_password_protected, recovery_model,
           has_bulk_logged_data, is_snapshot, is_readonly, is_single_user, has_backup_checksums,
           is_damaged, begins_log_chain, has_incomplete_metadata, is_force_offline, is_copy_only,
           first_recovery_fork_guid, last_recovery_fork_guid, fork_point_lsn, database_guid,
           family_guid, differential_base_lsn, differential_base_guid, CAST(compressed_backup_size
           AS REAL) AS compressed_backup_size, key_algorithm, encryptor_thumbprint, encryptor_type,
           last_valid_restore_time, compression_algorithm, compression_level
    FROM own_backupset WHERE is_forgotten = 0;
CREATE VIEW backupfile AS
    SELECT backup_set_id, first_family_number, first_media_number, filegroup_name, page_size,
           file_number, CAST(backed_up_page_count AS REAL) AS backed_up_page_count, file_type,
           source_file_block_size, CAST(file_size AS REAL) AS file_size, logical_name,
           physical_drive, physical_name, state, state_desc, create_lsn, drop_lsn, file_guid,
           read_only_lsn, read_write_lsn, differential_base_lsn, differential_base_guid,
           CAST(backup_size AS REAL) AS backup_size, filegroup_guid, is_readonly, is_present
    FROM own_backupfile WHERE backup_set_id IN (SELECT backup_set_id FROM backupset);
CREATE VIEW backupmediaset AS
    SELECT * FROM own_backupmediaset WHERE media_set_id IN (SELECT media_set_id FROM backupset);
CREATE VIEW backupmediafamily AS
    SELECT * FROM own_backupmediafamily WHERE media_set_id IN (SELECT media_set_id FROM backupset);
CREATE VIEW backupfilegroup AS
    SELECT * FROM own_backupfilegroup WHERE backup_set_id IN (SELECT backup_set_id FROM backupset);
CREATE TABLE own_master_key (
    key_id INTEGER PRIMARY KEY CHECK (key_id = 1),
    by_service BLOB NOT NULL,
    by_password BLOB NOT NULL,
    create_date TEXT NOT NULL
);
CREATE TABLE own_certificate (
    certificate_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    thumbprint BLOB NOT NULL UNIQUE,
    certificate BLOB NOT NULL,
    private_key BLOB,
    subject TEXT NOT NULL,
    serial_number TEXT NOT NULL,
    start_date TEXT NOT NULL,
    expiry_date TEXT NOT NULL,
    key_backup_date TEXT
);
CREATE TABLE own_file (
    database_id INTEGER NOT NULL,
    file_id INTEGER NOT NULL,
    is_log INTEGER NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    PRIMARY KEY (database_id, file_id)
) WITHOUT ROWID;
INSERT INTO own_configuration VALUES (101, 'recovery interval (min)', 0, 0, 32767, 0, 0, 'Maximum recovery interval in minutes', 1, 1);
INSERT INTO own_configuration VALUES (518, 'show advanced options', 0, 0, 1, 0, 0, 'show advanced options', 1, 0);
INSERT INTO own_configuration VALUES (1537, 'media retention', 0, 0, 365, 0, 0, 'Tape retention period in days', 1, 1);
INSERT INTO own_configuration VALUES (1544, 'max server memory (MB)', 2147483647, 128, 2147483647, 2147483647, 2147483647, 'Maximum size of server memory (MB)', 0, 1);
INSERT INTO own_configuration VALUES (1579, 'backup compression default', 0, 0, 1, 0, 0, 'Enable compression of backups by default', 1, 0);
INSERT INTO own_configuration VALUES (1584, 'backup checksum default', 0, 0, 1, 0, 0, 'Enable checksum of backups by default', 1, 0);
INSERT INTO own_configuration VALUES (1599, 'hardware offload enabled', 0, 0, 1, 0, 0, 'Enable hardware offloading on the server', 0, 1);
INSERT INTO own_configuration VALUES (1600, 'hardware offload config', 0, 0, 255, 0, 0, 'Configure hardware offload accelerators', 0, 1);
INSERT INTO own_configuration VALUES (1601, 'hardware offload mode', 0, 0, 255, 0, 0, 'Accelerators that are held to software', 0, 1);
INSERT INTO own_configuration VALUES (1602, 'backup compression algorithm', 0, 0, 3, 0, 0, 'Configure default backup compression algorithm', 1, 0);
INSERT INTO own_configuration VALUES (50001, 'restores must be encrypted', 0, 0, 1, 0, 0, 'Refuse to restore backups that are not encrypted', 1, 0);
