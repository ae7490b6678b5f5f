//! Every message, ordered by number.
//!
//! A row has the number, severity, name with parameters, and text. It defines a constructor of that
//! name and an entry of [`ALL`]. Numbers below 50,000, their severities and texts are SQL Server's
//! (its published list, or captured output); the others are ours.

use std::fmt::Display;

use super::{Message, Severity};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The message number.
    pub number: u32,
    pub severity: u8,
    /// Its text, with parameters in braces.
    pub template: &'static str,
}

macro_rules! messages {
    ($($number:literal, $severity:literal, $name:ident($($parameter:ident),*), $text:literal;)*) => {
        /// The whole table, sorted by number.
        pub const ALL: &[Entry] = &[
            $(Entry { number: $number, severity: $severity, template: $text },)*
        ];

        $(
            #[doc = concat!("Message ", $number, ", severity ", $severity, ": `", $text, "`")]
            pub fn $name($($parameter: impl Display),*) -> Message {
                Message {
                    number: $number,
                    severity: Severity($severity),
                    state: 1,
                    line: 0,
                    text: format!($text),
                }
            }
        )*
    };
}

#[rustfmt::skip]
messages! {
    102, 15, syntax_near(text), "Incorrect syntax near '{text}'.";
    105, 15, unclosed_quote(text), "Unclosed quotation mark after the character string '{text}'.";
    113, 15, missing_end_comment(), "Missing end comment mark '*/'.";
    134, 15, variable_declared_twice(name), "The variable name '{name}' has already been declared. Variable names must be unique within a query batch or stored procedure.";
    137, 15, undeclared_variable(name), "Must declare the scalar variable \"{name}\".";
    155, 15, unknown_option(option, statement), "'{option}' is not a recognized {statement} option.";
    156, 15, syntax_near_keyword(word), "Incorrect syntax near the keyword '{word}'.";
    174, 15, argument_count(function, count), "The {function} function requires {count} argument(s).";
    195, 15, function_not_recognized(name), "'{name}' is not a recognized built-in function name.";
    201, 16, parameter_missing(procedure, parameter), "Procedure or function '{procedure}' expects parameter '{parameter}', which was not supplied.";
    217, 16, nesting_exceeded(limit), "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {limit}).";
    226, 16, not_in_transaction(statement), "{statement} statement not allowed within multi-statement transaction.";
    241, 16, date_conversion_failed(), "Conversion failed when converting date and/or time from character string.";
    245, 16, conversion_failed(value, data_type), "Conversion failed when converting the value '{value}' to data type {data_type}.";
    281, 16, invalid_style(style, data_type), "{style} is not a valid style number when converting from {data_type} to a character string.";
    402, 16, incompatible_types(left, right, operator), "The data types {left} and {right} are incompatible in the {operator} operator.";
    517, 16, date_overflow(data_type), "Adding a value to a '{data_type}' column caused an overflow.";
    529, 16, conversion_not_allowed(from, to), "Explicit conversion from data type {from} to {to} is not allowed.";
    537, 16, invalid_length(), "Invalid length parameter passed to the LEFT or SUBSTRING function.";
    824, 24, logical_consistency(detail, page, offset, file), "SQL Server detected a logical consistency-based I/O error: {detail}. It occurred during a read of page {page} at offset {offset} in file '{file}'.";
    911, 16, database_does_not_exist(database), "Database '{database}' does not exist. Make sure that the name is entered correctly.";
    927, 14, database_restoring(database), "Database '{database}' cannot be opened. It is in the middle of a restore.";
    1801, 16, database_exists(database), "Database '{database}' already exists. Choose a different database name.";
    1802, 16, create_database_failed(), "CREATE DATABASE failed. Some file names listed could not be created. Check related errors.";
    1834, 16, file_used_by_database(file, database), "The file '{file}' cannot be overwritten.  It is being used by database '{database}'.";
    2528, 10, dbcc_completed(), "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";
    2536, 10, dbcc_results(database), "DBCC results for '{database}'.";
    2715, 16, data_type_not_found(name), "Column, parameter, or variable #1: Cannot find data type {name}.";
    2812, 16, procedure_not_found(procedure), "Could not find stored procedure '{procedure}'.";
    3009, 10, history_not_written(), "Could not insert a backup or restore history/detail record in the msdb database. This may indicate a problem with the msdb database. The backup/restore operation was still successful.";
    3010, 16, mirror_counts_differ(), "Invalid backup mirror specification. All mirrors must have the same number of members.";
    3011, 16, device_classes_differ(), "All backup devices must be of the same general class (for example, DISK and TAPE).";
    3013, 16, terminating_abnormally(statement), "{statement} is terminating abnormally.";
    3014, 10, successfully_processed(statement, pages, seconds, rate), "{statement} successfully processed {pages} pages in {seconds} seconds ({rate} MB/sec).";
    3021, 16, within_transaction(), "Cannot perform a backup or restore operation within a transaction.";
    3023, 16, must_be_serialized(), "Backup, file manipulation operations (such as ALTER DATABASE ADD FILE) and encryption changes on a database must be serialized. Reissue the statement after the current backup or file manipulation operation is completed.";
    3031, 16, option_conflict(option, conflicts), "Option '{option}' conflicts with option(s) '{conflicts}'. Remove the conflicting option and reissue the statement.";
    3032, 16, option_not_supported(options), "One or more of the options ({options}) are not supported for this statement. Review the documentation for supported options.";
    3035, 16, no_differential_base(database), "Cannot perform a differential backup for database \"{database}\", because a current database backup does not exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH DIFFERENTIAL option.";
    3038, 16, invalid_device_name(name), "The file name \"{name}\" is invalid as a backup device name. Reissue the BACKUP statement with a valid file name.";
    3041, 16, backup_failed_to_complete(command), "BACKUP failed to complete the command {command}. Check the backup application log for detailed messages.";
    3042, 10, damaged_database_backed_up(), "BACKUP WITH CONTINUE_AFTER_ERROR successfully generated a backup of the damaged database. Refer to the SQL Server error log for information about the errors that were encountered.";
    3043, 16, backup_page_error(database, file_id, page, file), "BACKUP '{database}' detected an error on page ({file_id}:{page}) in file '{file}'.";
    3044, 16, zero_length_device(), "Invalid zero-length device name. Reissue the BACKUP statement with a valid device name.";
    3057, 16, device_name_too_long(limit), "Invalid device name. The length of the device name provided exceeds supported limit (maximum length is: {limit}). Reissue the BACKUP statement with a valid device name.";
    3096, 16, backup_certificate_expired(), "The Certificate specified for backup encryption has expired.";
    3101, 16, exclusive_access(), "Exclusive access could not be obtained because the database is in use.";
    3102, 16, in_use_by_session(statement, database), "{statement} cannot process database '{database}' because it is in use by this session. It is recommended that the master database be used when performing this operation.";
    3105, 16, too_many_pages(file, limit), "RESTORE cannot restore any more pages into file '{file}' because the maximum number of pages ({limit}) are already being restored. Either complete the restore sequence for the existing pages, or use RESTORE FILE to restore all pages in the file.";
    3111, 16, control_page(page), "Page {page} is a control page which cannot be restored in isolation. To repair this page, the entire file must be restored.";
    3115, 16, subset_in_simple_recovery(), "The database is using the simple recovery model. It is not possible to restore a subset of the read-write data.";
    3116, 16, other_recovery_path(), "The supplied backup is not on the same recovery path as the database, and is ineligible for use for an online file restore.";
    3117, 16, not_ready_to_rollforward(), "The log or differential backup cannot be restored because no files are ready to rollforward.";
    3118, 16, restore_cannot_create(database), "The database \"{database}\" does not exist. RESTORE can only create a database when restoring either a full backup or a file backup of the primary file.";
    3119, 16, restore_plan_problems(), "Problems were identified while planning for the RESTORE statement. Previous messages provide details.";
    3132, 16, families_missing(expected, provided), "The media set has {expected} media families but only {provided} are provided. All members must be provided.";
    3135, 16, wrong_set_kind(file, statement), "The backup set in file '{file}' was created by {statement} and cannot be used for this restore operation.";
    3136, 16, wrong_differential_base(), "This differential backup cannot be restored because the database has not been restored to the correct earlier state.";
    3141, 16, named_otherwise(name, database), "The database to be restored was named '{name}'. Reissue the statement using the WITH REPLACE option to overwrite the '{database}' database.";
    3142, 16, file_exists(file, existing), "File \"{file}\" cannot be restored over the existing \"{existing}\". Reissue the RESTORE statement using WITH REPLACE to overwrite pre-existing files, or WITH MOVE to identify an alternate location.";
    3143, 16, not_our_set(device), "The data set on device '{device}' is not a SQL Server backup set.";
    3145, 16, stop_at_in_simple_recovery(option), "The {option} option is not supported for databases that use the SIMPLE recovery model.";
    3147, 16, tempdb_not_allowed(), "Backup and restore operations are not allowed on database tempdb.";
    3153, 16, already_recovered(), "The database is already fully recovered.";
    3154, 16, other_database(database), "The backup set holds a backup of a database other than the existing '{database}' database.";
    3156, 16, file_cannot_be_restored(file, target), "File '{file}' cannot be restored to '{target}'. Use WITH MOVE to identify a valid location for the file.";
    3176, 16, file_claimed_twice(file, first, first_id, second, second_id), "File '{file}' is claimed by '{first}'({first_id}) and '{second}'({second_id}). The WITH MOVE clause can be used to relocate one or more files.";
    3181, 10, space_problems_ahead(), "Attempting to restore this backup may encounter storage space problems. Subsequent messages will provide details.";
    3183, 16, restore_page_error(file_id, page, database), "RESTORE detected an error on page ({file_id}:{page}) in database \"{database}\" as read from the backup set.";
    3184, 10, restored_with_damage(), "RESTORE WITH CONTINUE_AFTER_ERROR was successful but some damage was encountered. Inconsistencies in the database are possible.";
    3187, 16, set_has_no_checksums(), "RESTORE WITH CHECKSUM cannot be specified because the backup set does not contain checksum information.";
    3189, 16, set_damaged(), "Damage to the backup set was detected.";
    3194, 16, page_beyond_end(page), "Page {page} is beyond the end of the file. Only pages that are in the current range of the file can be restored.";
    3195, 16, page_not_from_set(page), "Page {page} cannot be restored from this backup set. RESTORE PAGE can only be used from full backup sets or from the first log or differential backup taken since the file was added to the database.";
    3201, 16, cannot_open_device(device, error), "Cannot open backup device '{device}'. {error}.";
    3202, 16, device_write_failed(device, error), "Write on \"{device}\" failed: {error}";
    3203, 16, device_read_failed(device, error), "Read on \"{device}\" failed: {error}";
    3204, 16, aborted(), "The backup or restore was aborted.";
    3205, 16, too_many_devices(limit), "Too many backup devices specified for backup or restore; only {limit} are allowed.";
    3206, 16, device_not_found(device), "Backup device '{device}' does not exist. To view existing backup devices, use the sys.backup_devices catalog view. To create a new backup device use either sp_addumpdevice or SQL Server Management Studio.";
    3207, 16, device_needed(), "Backup or restore requires at least one backup device. Rerun your statement specifying a backup device.";
    3208, 16, unexpected_end_of_file(), "Unexpected end of file while reading beginning of backup set. Confirm that the media contains a valid SQL Server backup set, and see the console error log for more details.";
    3210, 16, mirror_mismatch(device, other), "The mirror member in drive \"{device}\" is inconsistent with the mirror member in drive \"{other}\".";
    3211, 10, percent_processed(percent), "{percent} percent processed.";
    3212, 16, mirror_member_count(), "The mirror device specification is inconsistent with the mirrored media set: the media set was made with another number of mirrors.";
    3214, 16, too_many_mirrors(limit), "Too many backup mirrors are specified. Only {limit} are allowed.";
    3215, 16, format_needed_for_mirror(), "Use WITH FORMAT to create a new mirrored backup set.";
    3216, 16, rewind_only_tape(), "RESTORE REWINDONLY is only applicable to tape devices.";
    3217, 16, invalid_parameter(parameter), "Invalid value specified for {parameter} parameter.";
    3227, 16, family_given_twice(device, family, other), "The backup media on \"{device}\" is part of media family {family} which has already been processed on \"{other}\". Ensure that backup devices are correctly specified. For tape devices, ensure that the correct volumes are loaded.";
    3231, 16, family_count_differs(device, found, expected), "The media loaded on \"{device}\" is formatted to support {found} media families, but {expected} media families are expected according to the backup device specification.";
    3232, 16, set_identity_missing(device, family), "The volume mounted on \"{device}\" does not have the expected backup set identity. The volume may be obsolete due to a more recent overwrite of this media family. In that case, locate the correct volume with sequence number 1 of media family {family}.";
    3234, 16, logical_file_unknown(file, database), "Logical file '{file}' is not part of database '{database}'. Use RESTORE FILELISTONLY to list the logical file names.";
    3241, 16, family_malformed(device), "The media family on device '{device}' is incorrectly formed. SQL Server cannot process this media family.";
    3242, 16, not_mtf(device), "The file on device '{device}' is not a valid Microsoft Tape Format backup set.";
    3243, 16, mtf_version(device, major, minor), "The media family on device '{device}' was created using Microsoft Tape Format version {major}.{minor}. SQL Server supports version 1.0.";
    3244, 16, descriptor_too_large(limit), "Descriptor block size exceeds {limit} bytes. Use a shorter name and/or description string and retry the operation.";
    3250, 16, out_of_range(value, parameter), "The value '{value}' is not within range for the {parameter} parameter.";
    3253, 16, block_size_power_of_two(), "The block size parameter must supply a value that is a power of 2.";
    3254, 16, volume_empty(device), "The volume on device '{device}' is empty.";
    3256, 16, set_incomplete(device), "The backup set on device '{device}' was terminated while it was being created and is incomplete. RESTORE sequence is terminated abnormally.";
    3257, 16, insufficient_space(volume, needed, available), "There is insufficient free space on disk volume '{volume}' to create the database. The database requires {needed} additional free bytes, while only {available} bytes are available.";
    3258, 16, not_part_of_media_set(device), "The volume on the device \"{device}\" is not part of the media set that is currently being processed. Ensure that the backup devices are loaded with the correct media.";
    3262, 10, set_valid(position), "The backup set on file {position} is valid.";
    3266, 16, end_malformed(device), "The backup data at the end of \"{device}\" is incorrectly formatted. Backup sets on the media might be damaged and unusable. To determine the backup sets on the media, use RESTORE HEADERONLY. To determine the usability of the backup sets, run RESTORE VERIFYONLY. If all of the backup sets are incomplete, reformat the media using BACKUP WITH FORMAT. This destroys all the backup sets.";
    3268, 16, sector_size_differs(device, written, current), "Cannot use the backup file '{device}' because it was originally formatted with sector size {written} and is now on a device with sector size {current}.";
    3270, 16, internal_consistency(), "An internal consistency error has occurred. This error is similar to an assert. Contact technical support for assistance.";
    3271, 16, nonrecoverable_io(file, error), "A nonrecoverable I/O error occurred on file \"{file}:\" {error}.";
    3272, 16, block_size_incompatible(device, sector, block_size), "The '{device}' device has a hardware sector size of {sector}, but the block size parameter specifies an incompatible override value of {block_size}. Reissue the statement using a compatible block size.";
    3287, 16, file_id_malformed(position, device), "The file ID {position} on device '{device}' is incorrectly formed and can not be read.";
    3701, 11, cannot_drop(database), "Cannot drop the database '{database}', because it does not exist or you do not have permission.";
    3702, 16, drop_in_use(database), "Cannot drop database \"{database}\" because it is currently in use.";
    3708, 16, drop_system_database(database), "Cannot drop the database '{database}' because it is a system database.";
    3902, 16, commit_without_begin(), "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    3903, 16, rollback_without_begin(), "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    4030, 10, not_expired(device, expires), "The medium on device '{device}' expires on {expires} and cannot be overwritten.";
    4035, 10, processed_pages(pages, database, file, position), "Processed {pages} pages for database '{database}', file '{file}' on file {position}.";
    4037, 16, media_name_differs(given, found, device), "The user-specified MEDIANAME \"{given}\" does not match the MEDIANAME \"{found}\" of the device \"{device}\".";
    4038, 16, set_not_found(position, device), "Cannot find file ID {position} on device '{device}'.";
    4208, 16, not_in_simple_recovery(statement), "The statement {statement} is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change the recovery model using ALTER DATABASE.";
    4350, 16, page_list_malformed(count, offset), "The list of pages provided with the RESTORE PAGE statement is incorrectly formatted. Prior to the problem {count} pages were correctly identified. The problem was hit at character offset {offset}. Check that all pages are identified by numeric <file>:<page> pairs with commas separating each pair. For example: PAGE='1:57,2:31'.";
    4353, 16, move_given_twice(file), "Conflicting file relocations have been specified for file '{file}'. Only a single WITH MOVE clause should be specified for any logical file name.";
    5120, 16, cannot_open_file(file, error), "Unable to open the physical file \"{file}\". {error}.";
    5133, 16, directory_lookup_failed(file, error), "Directory lookup for the file \"{file}\" failed with the operating system error {error}.";
    5701, 10, changed_database(database), "Changed database context to '{database}'.";
    5807, 16, recovery_interval_too_long(minutes), "Recovery intervals above {minutes} minutes not recommended. Use the RECONFIGURE WITH OVERRIDE statement to force this configuration.";
    8114, 16, data_type_conversion(from, to), "Error converting data type {from} to {to}.";
    8115, 16, arithmetic_overflow(to), "Arithmetic overflow error converting expression to data type {to}.";
    8134, 16, divide_by_zero(), "Divide by zero error encountered.";
    8144, 16, too_many_arguments(procedure), "Procedure or function {procedure} has too many arguments specified.";
    8145, 16, not_a_parameter(parameter, procedure), "{parameter} is not a parameter for procedure {procedure}.";
    8169, 16, guid_conversion_failed(), "Conversion failed when converting from a character string to uniqueidentifier.";
    8989, 10, check_database_result(count, database), "CHECKDB found 0 allocation errors and {count} consistency errors in database '{database}'.";
    9002, 17, log_full(database, reason), "The transaction log for database '{database}' is full due to '{reason}'.";
    15010, 16, database_not_found_for_procedure(database), "The database '{database}' does not exist. Supply a valid database name. To see available databases, use sys.databases.";
    15012, 16, device_unknown(device), "The device '{device}' does not exist. Use sys.backup_devices to show available devices.";
    15026, 16, device_exists(device), "Logical device '{device}' already exists.";
    15044, 16, device_type_unknown(device_type), "The type, '{device_type}', is an unknown backup device type. Use the type 'disk', 'tape', or 'pipe'.";
    15123, 16, configuration_unknown(option), "The configuration option '{option}' does not exist, or it may be an advanced option.";
    15124, 16, configuration_not_unique(option), "The configuration option '{option}' is not unique.";
    15129, 16, configuration_value_invalid(value, option), "'{value}' is not a valid value for configuration option '{option}'.";
    15151, 16, cannot_find(action, kind, name), "Cannot {action} the {kind} '{name}', because it does not exist or you do not have permission.";
    15208, 16, certificate_file_invalid(), "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do not have permissions for it.";
    15232, 16, certificate_exists(name), "A certificate with name '{name}' already exists or this certificate already has been added to the database.";
    15240, 16, cannot_write_file(path), "Cannot write into file '{path}'. Verify that you have write permissions, that the file path is valid, and that the file does not already exist.";
    15457, 10, configuration_changed(option, from, to), "Configuration option '{option}' changed from {from} to {to}. Run the RECONFIGURE statement to install.";
    15465, 16, private_key_password_invalid(), "The private key password is invalid.";
    15578, 16, master_key_exists(), "There is already a master key in the database. Please drop it before performing this statement.";
    15580, 16, key_in_use(name), "Cannot drop master key because certificate '{name}' is encrypted by it.";
    15581, 16, master_key_needed(), "Please create a master key in the database or open the master key in the session before performing this operation.";
    33111, 16, certificate_not_found(thumbprint), "Cannot find server certificate with thumbprint '{thumbprint}'.";
    50000, 16, sqlite_failed(error), "SQLite: {error}";
    50001, 16, not_built_yet(feature, hint), "{feature} is not implemented. {hint}";
    50002, 16, typographic_quote(found, instead), "The character {found} is a typographic quotation mark, as inserted by web pages and word processors. Type {instead} instead.";
    50003, 16, not_a_sqlite_database(file, reason), "The file '{file}' cannot be backed up as a SQLite database: {reason}";
    50004, 16, set_not_comparable(reason), "The differential base cannot be used: {reason}";
    50005, 16, statement_not_supported(what, hint), "{what} is not supported. {hint}";
    50006, 16, restoring_over_restore(file, hint), "A restore into '{file}' is already under way or was left unfinished. {hint}";
    50007, 16, format_version(device, found, supported), "The media family on device '{device}' was written in version {found} of the Windlass media format; this program reads versions up to {supported}. Use a newer version of Windlass.";
    50008, 10, probe_only(what), "{what}: nothing was written and no backup was made.";
    50009, 16, instance_failed(what, error), "The instance {what}: {error}";
    50010, 10, note(text), "{text}";
    50011, 10, nothing_kept(), "NUL: the data was discarded. This run is not a differential base, and the history lists no backup set for it.";
    50012, 16, base_media_missing(database, made, reason), "The differential backup of '{database}' is refused, because its base, the full backup of {made}, cannot be restored: {reason}. Make a full backup. (windlass backup --base-missing-ok makes the differential anyway.)";
    50013, 10, base_media_missing_ignored(database, made, reason), "Warning: this differential of '{database}' cannot be restored, because its base, the full backup of {made}, cannot be restored: {reason}. Make a full backup.";
    50014, 10, base_not_seen(database, made, reason), "Warning: it is not known whether this differential of '{database}' can be restored: the media of its base, the full backup of {made}, could not be checked: {reason}.";
    50015, 10, base_not_taken(database, error), "The backup is complete, but it is not fully set up as the differential base of '{database}': {error}.";
    50020, 16, path_means_no_file(path, reason), "The path '{path}' does not name a file here: {reason}";
    50021, 16, sequence_unfinished(database, hint), "The restore of '{database}' is not finished. {hint}";
    50022, 16, insufficient_backup_space(folder, needed, free), "There is not enough space in '{folder}': the backup needs {needed} bytes, and {free} are free.";
    50023, 16, engine_refused(error), "The page engine: {error}.";
    50024, 17, file_full(database, file, reason), "File '{file}' of database '{database}' is full: {reason}.";
    50025, 16, defect(what, hint), "A defect in Windlass stopped the {what}. {hint}";
    50028, 16, restored_no_database(file, defect), "The content of the backup is not restored to '{file}': {defect}. If this is intended, restore it with AS_IS (--as-is).";
    50029, 16, less_protected(base, found), "The backup restored so far is {base}, but this backup set is {found}: anyone who has seen the headers of the other could have made it. Nothing was changed. If it was signed, ask for the signature with SIGNED_BY (--signed-by). If you trust its source, restore it with ALLOW_UNENCRYPTED (--allow-unencrypted).";
    50030, 16, encryption_failed(error), "Encryption: {error}.";
    50040, 16, newest_copy_needed(what, family), "{what}. Nothing was changed. Name the newest copy of media family {family}. If there is none, back up to new files, or overwrite all families with INIT or FORMAT (--init, --format), which discards the backup sets on them.";
    50041, 16, passphrase_needed(device), "The backup set on '{device}' is encrypted with a passphrase, and no matching passphrase was given. Name its file with --passphrase-file FILE. To check what can be checked without it: windlass verify --without-key.";
    50042, 10, set_not_authenticated(position), "The checksums, structure and counts of the backup set on file {position} are correct. It is encrypted and was read without a key: it was not authenticated, and it is not known whether a key opens it.";
    50043, 16, not_signed(reason), "The required signature is missing: {reason}.";
    50044, 16, signing_failed(error), "Signatures: {error}.";
    50045, 10, signed_as_asked(position, fingerprint), "The backup set on file {position} and everything in it is signed with the key {fingerprint}, as required.";
    50046, 10, signature_right(position, fingerprint), "The backup set on file {position} and everything in it is signed with the key {fingerprint}. The set cannot prove whose key this is: name the keys you trust with --signed-by (SIGNED_BY).";
    50050, 16, not_a_database(file), "The file '{file}' does not begin with a SQLite header: it is another kind of file, or an encrypted database. To use it unchanged, specify AS_IS (--as-is on the command line; CREATE DATABASE ... FOR ATTACH WITH AS_IS).";
    50051, 16, integrity_finding(database, finding), "Database '{database}': {finding}";
    50052, 16, integrity_failed(database, count), "SQLite's check found {count} problem(s) in '{database}'. It was not backed up. CONTINUE_AFTER_ERROR (--continue-after-error) backs it up anyway, marked as damaged.";
    50053, 10, database_cut(file, expected, found), "Warning: the header of '{file}' says {expected} bytes, but the file has {found}: it is truncated. The backup contains what exists.";
    50060, 16, several_databases(held), "The media hold backups of several databases: {held}. Choose a database with --of NAME, or a set with --set N.";
    50061, 16, no_backup_of(database, held), "The media hold no backup of '{database}'. They hold {held}.";
    50062, 16, nothing_restorable(reasons), "None of these backup sets can be restored: {reasons}.";
}
