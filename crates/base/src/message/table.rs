//! Every message, ordered by number; after them the texts that share a number.
//!
//! A row has the number, severity, name with parameters, and text. It defines a constructor of that
//! name and an entry of [`ALL`]. Numbers below 50,000, their severities and texts are SQL Server's
//! (its published list, or captured output); the others are Windlass's own. Other reports of statements,
//! refusals, and unimplemented features share one number each: [`NOTES`], [`UNSUPPORTED`],
//! [`NOT_BUILT`].

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

impl Entry {
    /// The message with that number, if it has only one text.
    pub fn of(number: u32) -> Option<&'static Self> {
        let found = ALL.binary_search_by_key(&number, |entry| entry.number);
        found.ok().and_then(|index| ALL.get(index))
    }

    /// Its text as `sys.messages` and RAISERROR have it: `%s` for each parameter, `%%` for a percent sign.
    pub fn pattern(&self) -> String {
        let mut pattern = String::new();
        let mut rest = self.template;
        while let Some((before, after)) = rest.split_once('{') {
            pattern.push_str(&before.replace('%', "%%"));
            pattern.push_str("%s");
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
        pattern + &rest.replace('%', "%%")
    }
}

macro_rules! constructor {
    ($number:literal, $severity:literal, $name:ident($($parameter:ident),*), $text:literal) => {
        #[doc = concat!("Message ", $number, ", severity ", $severity, ": `", $text, "`")]
        pub fn $name($($parameter: impl Display),*) -> Message {
            Message {
                number: $number,
                severity: Severity($severity),
                state: 1,
                line: 0,
                procedure: None,
                text: format!($text),
            }
        }
    };
}

macro_rules! messages {
    ($($number:literal, $severity:literal, $name:ident($($parameter:ident),*), $text:literal;)*) => {
        /// The whole table, sorted by number.
        pub const ALL: &[Entry] = &[
            $(Entry { number: $number, severity: $severity, template: $text },)*
        ];

        $(constructor! { $number, $severity, $name($($parameter),*), $text })*
    };
}

/// What SQL Server advises in 3142 where a file is in the way that the statement names.
pub const WITH_REPLACE: &str = "Reissue the RESTORE statement using WITH REPLACE to overwrite pre-existing \
                                files, or WITH MOVE to identify an alternate location.";

/// The same for a file that may be anybody's: REPLACE alone does not overwrite it.
pub const WITH_MOVE: &str = "It is not known as a file of the database that is restored. Use WITH MOVE to identify an \
                             alternate location; to overwrite it, name it WITH MOVE, and use WITH REPLACE.";

/// What SQL Server does not say in 33111 of a missing certificate.
pub const CERTIFICATE_ADVICE: &str = "Create it from its backup (CREATE CERTIFICATE ... FROM FILE). \
                                      To check what can be checked without it: RESTORE VERIFYONLY ... WITH WITHOUTKEY.";

/// What SQL Server does not say in 3258 of a stripe of another backup.
pub const OTHER_MEDIA_SET: &str = "It is of another backup than the devices named before it. Name all stripes of one \
                                   backup, and no others; RESTORE LABELONLY shows the media set of a file.";

/// Texts that share a number.
macro_rules! texts {
    ($all:ident, $number:literal, $severity:literal;
     $($name:ident($($parameter:ident),*), $text:literal;)*) => {
        #[doc = concat!("The texts of message ", $number, ".")]
        pub const $all: &[Entry] = &[
            $(Entry { number: $number, severity: $severity, template: $text },)*
        ];

        $(constructor! { $number, $severity, $name($($parameter),*), $text })*
    };
}

#[rustfmt::skip]
messages! {
    102, 15, syntax_near(text), "Incorrect syntax near '{text}'.";
    103, 15, identifier_too_long(beginning, limit), "The identifier that starts with '{beginning}' is too long. Maximum length is {limit}.";
    105, 15, unclosed_quote(text), "Unclosed quotation mark after the character string '{text}'.";
    108, 15, order_position(position), "The ORDER BY position number {position} is out of range of the number of items in the select list.";
    111, 15, not_first_in_batch(), "'CREATE/ALTER PROCEDURE' must be the first statement in a query batch.";
    113, 15, missing_end_comment(), "Missing end comment mark '*/'.";
    116, 16, several_columns(), "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.";
    119, 15, must_pass_by_name(number), "Must pass parameter number {number} and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'.";
    128, 15, name_not_permitted(name), "The name \"{name}\" is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.";
    133, 15, label_unknown(label), "A GOTO statement references the label '{label}' but the label has not been declared.";
    134, 15, variable_declared_twice(name), "The variable name '{name}' has already been declared. Variable names must be unique within a query batch or stored procedure.";
    135, 15, break_outside(), "Cannot use a BREAK statement outside the scope of a WHILE statement.";
    136, 15, continue_outside(), "Cannot use a CONTINUE statement outside the scope of a WHILE statement.";
    137, 15, undeclared_variable(name), "Must declare the scalar variable \"{name}\".";
    141, 15, assigns_and_returns(), "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.";
    145, 15, order_not_selected(), "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.";
    147, 15, aggregate_in_where(), "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.";
    154, 15, not_in_procedure(statement), "{statement} is not allowed in a procedure, function or trigger.";
    155, 15, unknown_option(option, statement), "'{option}' is not a recognized {statement} option.";
    156, 15, syntax_near_keyword(word), "Incorrect syntax near the keyword '{word}'.";
    166, 15, no_database_prefix(statement), "'{statement}' does not allow specifying the database name as a prefix to the object name.";
    174, 15, argument_count(function, count), "The {function} function requires {count} argument(s).";
    179, 15, output_of_constant(), "Cannot use the OUTPUT option when passing a constant to a stored procedure.";
    191, 15, nested_too_deeply(), "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.";
    195, 15, not_recognized(name, kind), "'{name}' is not a recognized {kind}.";
    201, 16, parameter_missing(procedure, parameter), "Procedure or function '{procedure}' expects parameter '{parameter}', which was not supplied.";
    205, 16, set_columns_differ(), "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.";
    206, 16, type_clash(from, to), "Operand type clash: {from} is incompatible with {to}";
    207, 16, column_unknown(name), "Invalid column name '{name}'.";
    208, 16, object_unknown(name), "Invalid object name '{name}'.";
    209, 16, column_ambiguous(name), "Ambiguous column name '{name}'.";
    213, 16, values_do_not_match(), "Column name or number of supplied values does not match table definition.";
    217, 16, nesting_exceeded(limit), "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {limit}).";
    220, 16, value_overflow(data_type, value), "Arithmetic overflow error for data type {data_type}, value = {value}.";
    226, 16, not_in_transaction(statement), "{statement} statement not allowed within multi-statement transaction.";
    229, 14, object_permission_denied(permission, object, database, schema), "The {permission} permission was denied on the object '{object}', database '{database}', schema '{schema}'.";
    235, 16, money_syntax(), "Cannot convert a char value to money. The value has incorrect syntax.";
    240, 16, recursion_types_differ(column, table), "Types don't match between the anchor and the recursive part in column \"{column}\" of recursive query \"{table}\".";
    241, 16, date_conversion_failed(), "Conversion failed when converting date and/or time from character string.";
    242, 16, date_out_of_range(from, to), "The conversion of a {from} data type to a {to} data type resulted in an out-of-range value.";
    243, 16, type_unknown(name), "Type {name} is not a defined system type.";
    245, 16, conversion_failed(from, value, to), "Conversion failed when converting the {from} value '{value}' to data type {to}.";
    248, 16, text_overflow(from, value, to), "The conversion of the {from} value '{value}' overflowed an {to} column.";
    252, 16, recursion_without_union_all(table), "Recursive common table expression '{table}' does not contain a top-level UNION ALL operator.";
    259, 16, catalog_read_only(), "Ad hoc updates to system catalogs are not allowed.";
    262, 14, permission_denied(statement, database), "{statement} permission denied in database '{database}'.";
    263, 16, must_name_table(), "Must specify table to select from.";
    264, 16, column_set_twice(name), "The column name '{name}' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once.";
    266, 16, transaction_count_differs(before, after), "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = {before}, current count = {after}.";
    281, 16, invalid_style(style, data_type), "{style} is not a valid style number when converting from {data_type} to a character string.";
    289, 16, date_parts_invalid(data_type), "Cannot construct data type {data_type}, some of the arguments have values which are not valid.";
    300, 14, server_permission_denied(permission), "{permission} permission was denied on object 'server', database 'master'.";
    310, 15, recursion_limit_invalid(limit), "The value {limit} specified for the MAXRECURSION option exceeds the allowed maximum of 32767.";
    402, 16, incompatible_types(left, right, operator), "The data types {left} and {right} are incompatible in the {operator} operator.";
    448, 16, collation_invalid(name), "Invalid collation '{name}'.";
    512, 16, subquery_many_rows(), "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.";
    515, 16, null_not_allowed(column, table), "Cannot insert the value NULL into column '{column}', table '{table}'; column does not allow nulls. The statement fails.";
    517, 16, date_overflow(data_type), "Adding a value to a '{data_type}' column caused an overflow.";
    529, 16, conversion_not_allowed(from, to), "Explicit conversion from data type {from} to {to} is not allowed.";
    530, 16, recursion_exhausted(limit), "The statement terminated. The maximum recursion {limit} has been exhausted before statement completion.";
    535, 16, date_difference_overflow(), "The datediff function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use datediff with a less precise datepart.";
    537, 16, invalid_length(), "Invalid length parameter passed to the LEFT or SUBSTRING function.";
    824, 24, logical_consistency(detail, page, offset, file), "SQL Server detected a logical consistency-based I/O error: {detail}. It occurred during a read of page {page} at offset {offset} in file '{file}'.";
    911, 16, database_does_not_exist(database), "Database '{database}' does not exist. Make sure that the name is entered correctly.";
    916, 14, database_not_accessible(login, database), "The server principal \"{login}\" is not able to access the database \"{database}\" under the current security context.";
    927, 14, database_restoring(database), "Database '{database}' cannot be opened. It is in the middle of a restore.";
    952, 16, database_in_transition(database), "Database '{database}' is in transition. Try the statement later.";
    1031, 15, percent_invalid(), "Percent values must be between 0 and 100.";
    1038, 15, name_missing(), "An object or column name is missing or empty. Names written as '', [] or \"\" are not allowed.";
    1060, 15, row_count_invalid(), "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.";
    1087, 15, table_variable_unknown(name), "Must declare the table variable \"{name}\".";
    1222, 16, lock_timeout(), "Lock request time out period exceeded.";
    1801, 16, database_exists(database), "Database '{database}' already exists. Choose a different database name.";
    1802, 16, create_database_failed(), "CREATE DATABASE failed. Some file names listed could not be created. Check related errors.";
    1834, 16, file_used_by_database(file, database), "The file '{file}' cannot be overwritten.  It is being used by database '{database}'.";
    2528, 10, dbcc_completed(), "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";
    2536, 10, dbcc_results(database), "DBCC results for '{database}'.";
    2571, 14, dbcc_denied(login, command), "User '{login}' does not have permission to run DBCC {command}.";
    2627, 14, key_violation(columns), "Violation of PRIMARY KEY or UNIQUE constraint. Cannot insert duplicate key: {columns}.";
    2628, 16, text_truncated(table, column, value), "String or binary data would be truncated in table '{table}', column '{column}'. Truncated value: '{value}'.";
    2714, 16, object_exists(name), "There is already an object named '{name}' in the database.";
    2715, 16, data_type_not_found(name), "Column, parameter, or variable #1: Cannot find data type {name}.";
    2732, 16, error_number_invalid(number), "Error number {number} is invalid. The number must be from 13000 through 2147483647 and it cannot be 50000.";
    2754, 16, severity_needs_log(), "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option.";
    2760, 16, schema_unknown(name), "The specified schema name \"{name}\" either does not exist or you do not have permission to use it.";
    2787, 16, format_invalid(text), "Invalid format specification: '{text}'.";
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
    3036, 16, standby_not_backed_up(database), "The database '{database}' is in warm-standby state (set by executing RESTORE WITH STANDBY) and cannot be backed up until the entire restore sequence is completed.";
    3038, 16, invalid_device_name(name), "The file name \"{name}\" is invalid as a backup device name. Reissue the BACKUP statement with a valid file name.";
    3042, 10, damaged_database_backed_up(), "BACKUP WITH CONTINUE_AFTER_ERROR successfully generated a backup of the damaged database. Refer to the SQL Server error log for information about the errors that were encountered.";
    3044, 16, zero_length_device(), "Invalid zero-length device name. Reissue the BACKUP statement with a valid device name.";
    3057, 16, device_name_too_long(limit), "Invalid device name. The length of the device name provided exceeds supported limit (maximum length is: {limit}). Reissue the BACKUP statement with a valid device name.";
    3096, 16, backup_certificate_expired(), "The Certificate specified for backup encryption has expired.";
    3101, 16, exclusive_access(), "Exclusive access could not be obtained because the database is in use.";
    3102, 16, in_use_by_session(statement, database), "{statement} cannot process database '{database}' because it is in use by this session. It is recommended that the master database be used when performing this operation.";
    3105, 16, too_many_pages(file, limit), "RESTORE cannot restore any more pages into file '{file}' because the maximum number of pages ({limit}) are already being restored. Either complete the restore sequence for the existing pages, or use RESTORE FILE to restore all pages in the file.";
    3110, 14, restore_denied(database), "User does not have permission to RESTORE database '{database}'.";
    3111, 16, control_page(page), "Page {page} is a control page which cannot be restored in isolation. To repair this page, the entire file must be restored.";
    3115, 16, subset_in_simple_recovery(), "The database is using the simple recovery model. It is not possible to restore a subset of the read-write data.";
    3116, 16, other_recovery_path(), "The supplied backup is not on the same recovery path as the database, and is ineligible for use for an online file restore.";
    3117, 16, not_ready_to_rollforward(), "The log or differential backup cannot be restored because no files are ready to rollforward.";
    3118, 16, restore_cannot_create(database), "The database \"{database}\" does not exist. RESTORE can only create a database when restoring either a full backup or a file backup of the primary file.";
    3119, 16, restore_plan_problems(), "Problems were identified while planning for the RESTORE statement. Previous messages provide details.";
    3132, 16, families_missing(expected, provided), "The media set has {expected} media families but only {provided} are provided. All members must be provided.";
    3135, 16, set_not_usable(device, statement), "The backup set in file '{device}' was created by {statement} and cannot be used for this restore operation.";
    3136, 16, wrong_differential_base(), "This differential backup cannot be restored because the database has not been restored to the correct earlier state.";
    3142, 16, file_exists(file, existing, way), "File \"{file}\" cannot be restored over the existing \"{existing}\". {way}";
    3143, 16, not_our_set(device), "The data set on device '{device}' is not a SQL Server backup set.";
    3145, 16, stop_at_in_simple_recovery(option), "The {option} option is not supported for databases that use the SIMPLE recovery model.";
    3147, 16, tempdb_not_allowed(), "Backup and restore operations are not allowed on database tempdb.";
    3153, 16, already_recovered(), "The database is already fully recovered.";
    3154, 16, other_database(database), "The backup set holds a backup of a database other than the existing '{database}' database.";
    3156, 16, file_cannot_be_restored(file, target), "File '{file}' cannot be restored to '{target}'. Use WITH MOVE to identify a valid location for the file.";
    3159, 16, tail_not_backed_up(database), "The tail of the log for the database \"{database}\" has not been backed up. Use BACKUP LOG WITH NORECOVERY to backup the log if it contains work you do not want to lose. Use the WITH REPLACE or WITH STOPAT clause of the RESTORE statement to just overwrite the contents of the log.";
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
    3243, 16, mtf_version(device, major, minor), "The media family on device '{device}' was created using Microsoft Tape Format version {major}.{minor}. SQL Server supports version 1.0.";
    3244, 16, descriptor_too_large(limit), "Descriptor block size exceeds {limit} bytes. Use a shorter name and/or description string and retry the operation.";
    3250, 16, out_of_range(value, parameter), "The value '{value}' is not within range for the {parameter} parameter.";
    3253, 16, block_size_power_of_two(), "The block size parameter must supply a value that is a power of 2.";
    3254, 16, volume_empty(device), "The volume on device '{device}' is empty.";
    3256, 16, set_incomplete(device), "The backup set on device '{device}' was terminated while it was being created and is incomplete. RESTORE sequence is terminated abnormally.";
    3257, 16, insufficient_space(volume, needed, available), "There is insufficient free space on disk volume '{volume}' to create the database. The database requires {needed} additional free bytes, while only {available} bytes are available.";
    3258, 16, not_part_of_media_set(device), "The volume on the device \"{device}\" is not part of the media set that is currently being processed. Ensure that the backup devices are loaded with the correct media.";
    3262, 10, set_valid(position), "The backup set on file {position} is valid.";
    3270, 16, internal_consistency(), "An internal consistency error has occurred. This error is similar to an assert. Contact technical support for assistance.";
    3271, 16, nonrecoverable_io(file, error), "A nonrecoverable I/O error occurred on file \"{file}:\" {error}.";
    3272, 16, block_size_incompatible(device, sector, block_size), "The '{device}' device has a hardware sector size of {sector}, but the block size parameter specifies an incompatible override value of {block_size}. Reissue the statement using a compatible block size.";
    3287, 16, file_id_malformed(position, device), "The file ID {position} on device '{device}' is incorrectly formed and can not be read.";
    3288, 16, credential_unknown(name), "Credential name {name} does not exist or user does not have permission to access it.";
    3289, 16, url_without_credential(), "A Backup device of type URL was specified without a Credential, Backup/Restore operation cannot proceed.";
    3441, 16, standby_lost(database, id, file, error), "During startup of warm standby database '{database}' (database ID {id}), its standby file ('{file}') was inaccessible to the RESTORE statement. The operating system error was '{error}'. Diagnose the operating system error, correct the problem, and retry startup.";
    3623, 16, invalid_operation(), "An invalid floating point operation occurred.";
    3701, 11, cannot_drop(kind, name), "Cannot drop the {kind} '{name}', because it does not exist or you do not have permission.";
    3702, 16, drop_in_use(database), "Cannot drop database \"{database}\" because it is currently in use.";
    3708, 16, drop_system_database(database), "Cannot drop the database '{database}' because it is a system database.";
    3902, 16, commit_without_begin(), "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    3903, 16, rollback_without_begin(), "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    3906, 16, database_read_only(database), "Failed to update database \"{database}\" because the database is read-only.";
    3920, 10, mark_ignored(), "The WITH MARK option only applies to the first BEGIN TRAN WITH MARK statement. The option is ignored.";
    3930, 16, transaction_doomed(), "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.";
    3960, 16, update_conflict(), "Snapshot isolation transaction aborted due to update conflict: another session has changed the database since this transaction read it. Roll back the transaction and retry it.";
    3998, 16, doomed_at_end(), "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.";
    4030, 10, not_expired(device, expires), "The medium on device '{device}' expires on {expires} and cannot be overwritten.";
    4035, 10, processed_pages(pages, database, file, position), "Processed {pages} pages for database '{database}', file '{file}' on file {position}.";
    4037, 16, media_name_differs(given, found, device), "The user-specified MEDIANAME \"{given}\" does not match the MEDIANAME \"{found}\" of the device \"{device}\".";
    4038, 16, set_not_found(position, device), "Cannot find file ID {position} on device '{device}'.";
    4060, 11, cannot_open_database(database), "Cannot open database \"{database}\" requested by the login. The login failed.";
    4104, 16, multipart_unknown(name), "The multi-part identifier \"{name}\" could not be bound.";
    4108, 15, window_misplaced(), "Windowed functions can only appear in the SELECT or ORDER BY clauses.";
    4145, 15, not_a_condition(near), "An expression of non-boolean type specified in a context where a condition is expected, near '{near}'.";
    4208, 16, not_in_simple_recovery(statement), "The statement {statement} is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change the recovery model using ALTER DATABASE.";
    4214, 16, no_current_backup(), "BACKUP LOG cannot be performed because there is no current database backup.";
    4303, 10, more_log_needed(reached, needed), "The roll forward start point is now at log sequence number (LSN) {reached}. Additional roll forward past LSN {needed} is required to complete the restore sequence.";
    4305, 16, log_too_recent(first, needed), "The log in this backup set begins at LSN {first}, which is too recent to apply to the database. An earlier log backup that includes LSN {needed} can be restored.";
    4322, 10, stop_not_reached(), "This backup set contains records that were logged before the designated point in time. The database is being left in the restoring state so that more roll forward can be performed.";
    4326, 16, log_too_early(last, needed), "The log in this backup set terminates at LSN {last}, which is too early to apply to the database. A more recent log backup that includes LSN {needed} can be restored.";
    4329, 10, mark_not_reached(), "This log file contains records logged before the designated mark. The database is being left in the Restoring state so you can apply another log file.";
    4330, 16, other_log_path(), "This backup set cannot be applied because it is on a recovery path that is inconsistent with the database. The recovery path is the sequence of data and log backups that have brought the database to a particular recovery point. Find a compatible backup to restore, or restore the rest of the database to match a recovery point within this backup set, which will restore the database to a different point in time.";
    4334, 16, mark_is_no_lsn(), "The named mark does not identify a valid LSN.";
    4335, 16, stop_passed(), "The specified STOPAT time is too early. All or part of the database is already rolled forward beyond that point.";
    4338, 16, stop_too_early(), "The STOPAT clause specifies a point too early to allow this backup set to be restored. Choose a different stop point or use RESTORE DATABASE WITH RECOVERY to recover at the current point.";
    4346, 16, page_restore_needs_chain(), "RESTORE PAGE is not allowed with databases that use the SIMPLE recovery model or have broken the log backup chain.";
    4350, 16, page_list_malformed(count, offset), "The list of pages provided with the RESTORE PAGE statement is incorrectly formatted. Prior to the problem {count} pages were correctly identified. The problem was hit at character offset {offset}. Check that all pages are identified by numeric <file>:<page> pairs with commas separating each pair. For example: PAGE='1:57,2:31'.";
    4353, 16, move_given_twice(file), "Conflicting file relocations have been specified for file '{file}'. Only a single WITH MOVE clause should be specified for any logical file name.";
    5011, 14, alter_database_denied(database), "User does not have permission to alter database '{database}', the database does not exist, or the database is not in a state that allows access checks.";
    5120, 16, cannot_open_file(file, error), "Unable to open the physical file \"{file}\". {error}.";
    5133, 16, directory_lookup_failed(file, error), "Directory lookup for the file \"{file}\" failed with the operating system error {error}.";
    5170, 16, file_cannot_be_created(file), "Cannot create file '{file}' because it already exists. Change the file path or the file name, and retry the operation.";
    5172, 16, file_size_incorrect(file, found, expected), "The header for file '{file}' is not a valid database file header. The FILE SIZE property is incorrect: the file has {found} bytes, but the database has at least {expected} bytes in it. Restore the file or the database from a backup.";
    5173, 16, files_do_not_match(file, why), "One or more files do not match the primary file of the database. File '{file}': {why}. If you are attempting to attach a database, retry the operation with the correct files. If this is an existing database, the file may be corrupted and should be restored from a backup.";
    5701, 10, changed_database(database), "Changed database context to '{database}'.";
    5703, 10, changed_language(language), "Changed language setting to {language}.";
    5807, 16, recovery_interval_too_long(minutes), "Recovery intervals above {minutes} minutes not recommended. Use the RECONFIGURE WITH OVERRIDE statement to force this configuration.";
    5812, 14, reconfigure_denied(), "You do not have permission to run the RECONFIGURE statement.";
    6005, 10, shutdown_in_progress(), "SHUTDOWN is in progress.";
    6102, 14, kill_denied(), "User does not have permission to use the KILL statement.";
    6104, 16, kill_own(), "Cannot use KILL to kill your own process.";
    6106, 16, no_such_process(number), "Process ID {number} is not an active process ID.";
    7202, 11, server_unknown(server), "Could not find server '{server}' in sys.servers. Verify that the correct server name was specified. If necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.";
    7983, 14, dbcc_on_database_denied(login, command, database), "User '{login}' does not have permission to run DBCC {command} for database '{database}'.";
    8114, 16, data_type_conversion(from, to), "Error converting data type {from} to {to}.";
    8115, 16, arithmetic_overflow(to), "Arithmetic overflow error converting expression to data type {to}.";
    8117, 16, operand_invalid(data_type, operator), "Operand data type {data_type} is invalid for {operator} operator.";
    8120, 16, column_not_grouped(name), "Column '{name}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.";
    8134, 16, divide_by_zero(), "Divide by zero error encountered.";
    8143, 16, parameter_twice(name), "Parameter '{name}' was supplied multiple times.";
    8144, 16, too_many_arguments(procedure), "Procedure or function {procedure} has too many arguments specified.";
    8145, 16, not_a_parameter(parameter, procedure), "{parameter} is not a parameter for procedure {procedure}.";
    8155, 16, column_without_name(number, table), "No column name was specified for column {number} of '{table}'.";
    8158, 16, more_columns(table), "'{table}' has more columns than were specified in the column list.";
    8162, 16, not_an_output(parameter), "The formal parameter \"{parameter}\" was not declared as an OUTPUT parameter, but the actual parameter passed in requested output.";
    8169, 16, guid_conversion_failed(), "Conversion failed when converting from a character string to uniqueidentifier.";
    8179, 16, no_prepared(handle), "Could not find prepared statement with handle {handle}.";
    8989, 10, check_database_result(count, database), "CHECKDB found 0 allocation errors and {count} consistency errors in database '{database}'.";
    9002, 17, log_full(database, reason), "The transaction log for database '{database}' is full due to '{reason}'.";
    9810, 16, part_unsupported(part, function, data_type), "The datepart {part} is not supported by date function {function} for data type {data_type}.";
    9828, 16, translate_lengths(), "The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.";
    10704, 15, throw_outside_catch(), "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement.";
    10753, 15, needs_over(function), "The function '{function}' must have an OVER clause.";
    14200, 16, agent_value_invalid(parameter), "The specified '{parameter}' is invalid.";
    14226, 10, history_purged(count), "{count} history entries purged.";
    14234, 16, agent_name_invalid(parameter, procedure), "The specified '{parameter}' is invalid (valid values are returned by {procedure}).";
    14243, 10, job_started(name), "Job '{name}' started successfully.";
    14250, 16, agent_value_too_long(parameter, limit), "The specified {parameter} is too long. It must contain no more than {limit} characters.";
    14254, 10, job_stopped(name), "Job '{name}' stopped successfully.";
    14256, 16, job_without_server(name, id), "Cannot start the job \"{name}\" (ID {id}) because it does not have any job server or servers defined. Associate the job with a job server by calling sp_add_jobserver.";
    14261, 16, agent_object_exists(parameter, value), "The specified {parameter} ('{value}') already exists.";
    14262, 16, agent_object_unknown(parameter, value), "The specified {parameter} ('{value}') does not exist.";
    14266, 16, agent_value_not_among(parameter, values), "The specified '{parameter}' is invalid (valid values are: {values}).";
    14269, 16, job_has_server(name, server), "Job '{name}' is already targeted at server '{server}'.";
    14270, 16, job_lacks_server(name, server), "Job '{name}' is not currently targeted at server '{server}'.";
    14278, 16, schedule_invalid(reason), "The schedule for this job is invalid (reason: {reason}).";
    14280, 16, job_or_filters(), "Supply either a job name (and job aspect), or one or more job filter parameters.";
    14284, 16, job_id_for_new_job(), "Cannot specify a job ID for a new job. An ID will be assigned by the procedure.";
    14287, 16, agent_part_invalid(value, part), "The '{value}' supplied has an invalid {part}.";
    14288, 16, agent_order_invalid(later, earlier), "{later} cannot be before {earlier}.";
    14294, 16, job_not_identified(id, name), "Supply either {id} or {name} to identify the job.";
    14295, 16, on_demand_schedule(), "Frequency Type 0x2 (OnDemand) is no longer supported.";
    14371, 16, schedules_of_one_name(name, id, parameter), "There are two or more schedules named '{name}'. Specify {id} instead of {parameter} to uniquely identify the schedule.";
    14372, 16, schedule_in_use(), "The schedule was not deleted because it is being used by one or more jobs.";
    14373, 16, schedule_not_identified(id, name), "Supply either {id} or {name} to identify the schedule.";
    14374, 16, schedule_not_of_job(schedule, job), "The specified schedule name \"{schedule}\" is not associated with the job \"{job}\".";
    14572, 16, daily_interval(), "@freq_interval must be at least 1 for a daily job.";
    14573, 16, weekly_interval(), "@freq_interval must be a valid day of the week bitmask [Sunday = 1 .. Saturday = 64] for a weekly job.";
    14574, 16, monthly_interval(), "@freq_interval must be between 1 and 31 for a monthly job.";
    14575, 16, relative_which(), "@freq_relative_interval must be one of 1st (0x1), 2nd (0x2), 3rd [0x4], 4th (0x8) or Last (0x10).";
    14576, 16, relative_kind(), "@freq_interval must be between 1 and 10 (1 = Sunday .. 7 = Saturday, 8 = Day, 9 = Weekday, 10 = Weekend-day) for a monthly-relative job.";
    14577, 16, recurrence_factor(), "@freq_recurrence_factor must be at least 1.";
    15006, 16, name_invalid(name), "'{name}' is not a valid name because it contains invalid characters.";
    15007, 16, login_unknown(name), "'{name}' is not a valid login or you do not have permission.";
    15009, 16, object_without_text(name, database), "The object '{name}' does not exist in database '{database}' or is invalid for this operation.";
    15010, 16, database_not_found_for_procedure(database), "The database '{database}' does not exist. Supply a valid database name. To see available databases, use sys.databases.";
    15012, 16, device_unknown(device), "The device '{device}' does not exist. Use sys.backup_devices to show available devices.";
    15025, 16, principal_exists(name), "The server principal '{name}' already exists.";
    15026, 16, device_exists(device), "Logical device '{device}' already exists.";
    15044, 16, device_type_unknown(device_type), "The type, '{device_type}', is an unknown backup device type. Use the type 'disk', 'tape', or 'pipe'.";
    15116, 16, password_too_short(), "Password validation failed. The password does not meet the operating system policy requirements because it is too short.";
    15117, 16, password_too_long(), "Password validation failed. The password does not meet the operating system policy requirements because it is too long.";
    15118, 16, password_not_complex(), "Password validation failed. The password does not meet the operating system policy requirements because it is not complex enough.";
    15123, 16, configuration_unknown(option), "The configuration option '{option}' does not exist, or it may be an advanced option.";
    15124, 16, configuration_not_unique(option), "The configuration option '{option}' is not unique.";
    15129, 16, configuration_value_invalid(value, option), "'{value}' is not a valid value for configuration option '{option}'.";
    15151, 16, cannot_find(action, kind, name), "Cannot {action} the {kind} '{name}', because it does not exist or you do not have permission.";
    15170, 16, login_owns_jobs(count), "This login is the owner of {count} job(s). You must delete or reassign these jobs before the login can be dropped.";
    15208, 16, certificate_file_invalid(), "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do not have permissions for it.";
    15232, 16, certificate_exists(name), "A certificate with name '{name}' already exists or this certificate already has been added to the database.";
    15240, 16, cannot_write_file(path), "Cannot write into file '{path}'. Verify that you have write permissions, that the file path is valid, and that the file does not already exist.";
    15247, 16, not_permitted(), "User does not have permission to perform this action.";
    15402, 11, not_a_server_role(name), "'{name}' is not a fixed server role.";
    15405, 11, special_principal(name), "Cannot use the special principal '{name}'.";
    15457, 10, configuration_changed(option, from, to), "Configuration option '{option}' changed from {from} to {to}. Run the RECONFIGURE statement to install.";
    15465, 16, private_key_password_invalid(), "The private key password is invalid.";
    15530, 16, credential_exists(name), "The credential with name \"{name}\" already exists.";
    15578, 16, master_key_exists(), "There is already a master key in the database. Please drop it before performing this statement.";
    15580, 16, key_in_use(name), "Cannot drop master key because certificate '{name}' is encrypted by it.";
    15581, 16, master_key_needed(), "Please create a master key in the database or open the master key in the session before performing this operation.";
    16905, 16, cursor_open(), "The cursor is already open.";
    16915, 16, cursor_exists(name), "A cursor with the name '{name}' already exists.";
    16916, 16, cursor_unknown(name), "A cursor with the name '{name}' does not exist.";
    16917, 16, cursor_closed(), "Cursor is not open.";
    16924, 16, cursor_columns(), "Cursorfetch: The number of variables declared in the INTO list must match that of selected columns.";
    17441, 16, qat_not_loaded(), "This operation requires Intel(R) QuickAssist Technology (QAT) libraries to be loaded.";
    18054, 16, message_unknown(number, severity, state), "Error {number}, severity {severity}, state {state} was raised, but no message with that error number was found in sys.messages.";
    18452, 14, login_from_untrusted_domain(), "Login failed. The login is from an untrusted domain and cannot be used with Integrated authentication.";
    18456, 14, login_failed(login), "Login failed for user '{login}'.";
    22022, 16, agent_refuses(reason), "{reason}";
    33111, 16, certificate_not_found(thumbprint), "Cannot find server certificate with thumbprint '{thumbprint}'.";
    35100, 16, throw_number(number), "Error number {number} in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647.";
    50000, 16, sqlite_failed(error), "SQLite: {error}";
    50002, 15, typographic_quote(found, line, column, instead), "The character {found} at line {line}, column {column} is a typographic quotation mark, as inserted by web pages and word processors. Type {instead} instead.";
    50003, 16, not_a_sqlite_database(file, reason), "The file '{file}' cannot be backed up as a SQLite database: {reason}";
    50004, 16, set_not_comparable(reason), "The differential base cannot be used: {reason}";
    50006, 16, restoring_over_restore(file, hint), "A restore into '{file}' is already under way or was left unfinished. {hint}";
    50007, 16, format_version(device, found, supported), "The media family on device '{device}' was written in version {found} of the Windlass media format; this program reads versions up to {supported}. Use a newer version of Windlass.";
    50009, 16, instance_failed(what, error), "The instance {what}: {error}";
    50011, 10, nothing_kept(), "NUL: the data was discarded. This run is not a differential base, and the history lists no backup set for it.";
    50012, 16, base_media_missing(database, made, reason), "The differential backup of '{database}' is refused, because its base, the full backup of {made}, cannot be restored: {reason}. Make a full backup. (windlass backup --base FILE names it where it is by now, --base-missing-ok makes the differential anyway.)";
    50013, 10, base_media_missing_ignored(database, made, reason), "Warning: this differential of '{database}' cannot be restored, because its base, the full backup of {made}, cannot be restored: {reason}. Make a full backup.";
    50014, 10, base_not_seen(database, made, reason), "Warning: it is not known whether this differential of '{database}' can be restored: the media of its base, the full backup of {made}, could not be checked: {reason}.";
    50015, 10, base_not_taken(database, error), "The backup is complete, but it is not fully set up as the differential base of '{database}': {error}.";
    50020, 16, path_means_no_file(path, reason), "The path '{path}' does not name a file here: {reason}";
    50021, 16, sequence_unfinished(database, hint), "The restore of '{database}' is not finished. {hint}";
    50022, 16, insufficient_backup_space(folder, needed, free), "There is not enough space in '{folder}': the backup needs {needed} bytes, and {free} are free.";
    50023, 16, engine_refused(error), "The page engine: {error}.";
    50024, 17, file_full(database, file, reason), "File '{file}' of database '{database}' is full: {reason}.";
    50025, 16, defect(what, hint), "A defect in Windlass stopped the {what}. {hint}";
    50028, 16, restored_no_database(file, defect), "The content of the backup is not restored to '{file}': {defect}. If this is intended, restore it with AS_IS.";
    50029, 16, less_protected(base, found), "The backup restored so far is {base}, but this backup set is {found}: anyone who has seen the headers of the other could have made it. Nothing was changed. If it was signed, ask for the signature with SIGNED_BY. If you trust its source, restore it with ALLOW_UNENCRYPTED.";
    50030, 16, encryption_failed(error), "Encryption: {error}.";
    50039, 16, half_named(files), "A backup was interrupted while its files got their names: {files}. Choose one backup: restore from its files as they are, or give only its files that end with .windlass-new their names (mv NAME.windlass-new NAME). Then delete the other .windlass-new files.";
    50040, 16, newest_copy_needed(what, family), "{what}. Nothing was changed. Name the newest copy of media family {family}. If there is none, back up to new files, or overwrite all families with INIT or FORMAT, which discards the backup sets on them.";
    50041, 16, passphrase_needed(device), "The backup set on '{device}' is encrypted with a passphrase, and no matching passphrase was given. In a command of SQL Backup (EXEC sqlbackup): PASSWORDFILE = [FILE]; RESTORE in T-SQL has no option for it, windlass restore has --passphrase-file FILE. To check what can be checked without it: RESTORE VERIFYONLY ... WITH WITHOUTKEY.";
    50042, 10, set_not_authenticated(position), "The checksums, structure and counts of the backup set on file {position} are correct. It is encrypted and was read without a key: it was not authenticated, and it is not known whether a key opens it.";
    50043, 16, not_signed(reason), "The required signature is missing: {reason}.";
    50044, 16, signing_failed(error), "Signatures: {error}.";
    50045, 10, signed_as_asked(position, fingerprint), "The backup set on file {position} and everything in it is signed with the key {fingerprint}, as required.";
    50046, 10, signature_right(position, fingerprint), "The backup set on file {position} and everything in it is signed with the key {fingerprint}. The set cannot prove whose key this is: name the keys you trust with SIGNED_BY.";
    50047, 16, relied_set_damaged(file, position, why), "The backup set on file {position} of '{file}' cannot be read back: {why} No other backup is deleted for its sake. Make a new full backup.";
    50048, 16, medium_unreadable(file, why), "'{file}' may be a backup on which others depend, but cannot be read: {why}. Nothing is deleted while it is there. Make it readable, or move it to another folder.";
    50049, 16, copy_damaged(file, position, why), "'{file}' is a damaged copy of backup set {position}, which can be restored from the other copies: {why} Replace it by a copy that is intact.";
    50050, 16, not_a_database(file), "The file '{file}' does not begin with a SQLite header: it is another kind of file, or an encrypted database. To use it unchanged, specify AS_IS (BACKUP ... WITH AS_IS, CREATE DATABASE ... FOR ATTACH WITH AS_IS).";
    50051, 16, integrity_finding(database, finding), "Database '{database}': {finding}";
    50052, 16, integrity_failed(database, problems), "SQLite's check found {problems} in '{database}'. It was not backed up. To have a backup of it as it is, marked as damaged, specify CONTINUE_AFTER_ERROR.";
    50053, 16, database_cut(file, expected, found), "The database in '{file}' has {expected} bytes, but the file has {found}, and no log holds the rest: it is truncated. It was not backed up. Restore it from its last backup; or back up what exists with CONTINUE_AFTER_ERROR, as a damaged set that stands for no other.";
    50060, 16, several_databases(held), "The media hold backups of several databases: {held}. Choose a database with --of NAME, or a set with --set N.";
    50061, 16, no_backup_of(database, held), "The media hold no backup of '{database}'. They hold {held}.";
    50062, 16, nothing_restorable(reasons), "None of these backup sets can be restored: {reasons}.";
    50063, 16, newer_set_needs(set, needs), "Nothing was restored: {set} would give a newer state than the other sets, but it needs {needs}, which is not among them. Name the media of both; or, for the older state, only media without this set, or one set with --set N.";
    50064, 16, newer_set_unusable(set, why), "Nothing was restored: {set} would give a newer state than the other sets, but {why}. For the older state, name only media without this set, or one set with --set N.";
    50065, 16, several_of_one_name(name, held), "The media hold backups of different databases named '{name}': {held}. Name only the media of one of them, or a set with --set N.";
    50066, 16, set_dated_in_future(set, started), "Nothing was restored: {set} is dated {started}, in the future: the clock was wrong then, or is now, so which state is the newest cannot be told. Choose a set with --set N, or name only the media of the wanted one; of a log backup, the next log backup tells it.";
    50067, 16, cannot_unpack(device, why), "'{device}' cannot be unpacked: {why}.";
    50068, 16, medium_without_sets(device), "Nothing was restored: '{device}' begins as a medium, but no backup set can be found on it: it has lost a part, or its backup was never finished. It may have held a newer state than the other media that were named. Name an undamaged copy of it; or, for the state of the others, leave it out.";
    50069, 10, entry_not_updated(database, reason), "'{database}' is restored, but its entry in the instance's catalog could not be written and is as it was before: {reason} Repeat the restore WITH REPLACE once the catalog can be written.";
    50070, 16, written_set_lost(devices, reason), "The backup set was written to '{devices}', but it is not there: {reason}. Another program removed, replaced or changed the medium meanwhile. There is no backup; run it again.";
    50071, 16, files_of_another_database(database, log, other, found, known), "'{database}' was not opened, and nothing was changed: '{log}' is the log of another database, '{other}' with the identity {found}; '{database}' has {known}. If it was put there on purpose, detach '{database}' with sp_detach_db and attach the files under a name of their own. To have '{database}' back, move these files away and restore it.";
    50072, 10, file_of_another_database(database, file, found, known), "The file '{file}' of '{database}' is that of another database by now: it belongs to the family {found}, and until now '{database}' belonged to {known}. This backup is of what the file holds now. It is the beginning of a new family: the earlier backups are of another database, and none of them is its base.";
    50073, 16, file_made_for_another(database, file), "'{database}' was not opened, and nothing was changed: '{file}' was made for another database, and has taken the place of its own. If it was put there on purpose, detach '{database}' with sp_detach_db and attach the files under a name of their own. To have '{database}' back, move that file away and restore '{database}'.";
    50074, 16, copied_instance(operation, database, folder, original), "{operation} was refused: this instance, '{folder}', is a copy of '{original}', which is still there and has the same databases: '{database}' is its database too. Detach '{database}' here with sp_detach_db, which leaves its files alone. If this instance is to take the place of the other, move that folder away first.";
    50076, 16, base_in_future(database, started), "The differential backup of '{database}' is refused: its base, the full backup of {started}, is dated in the future. The clock was wrong then, or is now, so which state is the newest could not be told. Make a full backup. (windlass backup --base-missing-ok makes the differential anyway.)";
    50077, 10, base_in_future_ignored(database, started), "Warning: the base of this differential of '{database}', the full backup of {started}, is dated in the future: the clock was wrong then, or is now. Make a full backup.";
    50078, 16, set_partly_finished(position, partly), "Backup set {position} cannot be restored from these devices: {partly}. Name the newest copy of that stripe; the backup sets before this one can be restored.";
    50090, 16, spool_failed(error), "The follower's spool: {error}.";
    50091, 16, not_captured(wanted), "{wanted}. Nothing of the spool was applied.";
    50100, 10, cut_database_read(file, expected, found), "Warning: the database in '{file}' has {expected} bytes, but the file has {found}, and no log holds the rest: it is truncated. Only what exists is read.";
    50101, 16, sqlbackup_failed(code), "The command of SQL Backup failed with exit code {code}; its report says why. To go on after that, take the code in a variable: sqlbackup '...', @exitcode OUTPUT.";
    50102, 16, base_on_target(database, device), "The differential backup of '{database}' is refused: it would overwrite '{device}', which holds the full backup that it counts from, and could never be restored. Append it, or write it to another file.";
    50103, 16, base_lost_meanwhile(database, reason), "The differential backup of '{database}' is complete, but its full backup was removed while it was made ({reason}): without a copy of that it can never be restored. Make a full backup.";
    50104, 16, no_instance(folder), "There is no instance in '{folder}', and this command makes none. Check the name, or WINDLASS_INSTANCE and the settings file.";
    50120, 16, number_too_long(number), "The number {number} was not stored: a column of a SQLite table keeps 15 digits of a number that is no bigint. Store it as text (CAST(... AS varchar(40)) in a text column), or in a #temp table.";
    50150, 16, url_names_no_object(url, why), "'{url}' does not name an object: {why}.";
    50180, 16, database_emptied(file, backup, bytes), "'{file}' is empty (0 bytes), but {backup} holds {bytes} bytes of this database: SQLite never shrinks one to nothing, so its content is lost. It was not backed up. Restore it from its last backup; or back up the empty file with CONTINUE_AFTER_ERROR, as a damaged set that stands for no other. If it is a new database, make its first table before its backup.";
    50181, 10, emptied_database_read(file, backup, bytes), "Warning: '{file}' is empty (0 bytes), but {backup} holds {bytes} bytes of this database: its content is lost.";
    50182, 16, differential_less_protected(database, lack), "The differential backup of '{database}' is refused, because it is less protected than its base, the full backup: {lack}. (windlass backup --base-missing-ok makes the differential anyway.)";
    50183, 10, differential_less_protected_ignored(database, lack), "Warning: this differential of '{database}' is less protected than its base, the full backup: {lack}.";
    50184, 10, appended_to_damage(device, trouble), "Warning: '{device}' is damaged: {trouble}. What it holds before this place of the new backup set may be lost: verify its earlier backup sets, and make a full backup to another file if one of them is still needed.";
    50185, 10, known_damage_backed_up(database, known), "Warning: the backup of '{database}' is marked as damaged, and takes the place of no other: {known}. Restore the database, or repair it; a DBCC CHECKDB that finds nothing ends this.";
    50186, 16, nothing_expires(database, known), "No backup of '{database}' is deleted: {known}. Nobody knows since when, and which of its backups are intact. Restore the database, or repair it; a DBCC CHECKDB that finds nothing ends this.";
    50187, 10, damaged_set_restored(database), "Warning: the backup set was made of a damaged database, so '{database}' is damaged now. Check it with DBCC CHECKDB; until that finds nothing, its backups are marked as damaged.";
    50188, 16, api_cursor_not_supported(), "Server cursors of drivers (sp_cursoropen and the like) are not supported: ask for a forward-only, read-only result.";
    50189, 16, value_does_not_fit_column(column, length), "The result ends here: column '{column}' has a value of {length} bytes that its declared type cannot hold, as SQLite allows. Select it with CAST(... AS nvarchar(max)) or CAST(... AS varbinary(max)).";
    50190, 16, too_many_prepared(), "The session has too many prepared statements: release some (sp_unprepare), or reconnect.";
    50191, 16, protocol_not_supported(what), "This server does not support {what}.";
    50192, 16, database_not_opened(database), "Database '{database}' could not be opened when the server started; the following messages say why. The server goes on without it.";
    50193, 20, server_lost(error), "The connection to the server of the instance is lost: {error}. What the running batch had not committed is rolled back; look at the server's log.";
    50194, 16, database_not_closed(database), "Database '{database}' could not be closed when the server ended; the following messages say why. Its log has every committed transaction: the next start recovers it.";
    50195, 16, database_lent(database), "Database '{database}' is open in another program, which only backs it up when it is asked. Do this there, or when that program has closed the database.";
    50196, 16, not_lent(database), "A program backs up only the databases that it has open with the page engine, and '{database}' is none of them.";
    50197, 16, path_open_here(path), "'{path}' is open in this program, and is not opened a second time here: when it was closed again, the locks that the program's SQLite has on it would be gone. Name another file, or use 'windlass' from outside of the program.";
    50200, 10, stays_shared(database), "Database '{database}' stays open to other programs: nobody was disconnected. A restore over it is refused while another program has it open (3101), and locks it from then on.";
    50210, 14, path_outside(path), "'{path}' is outside of the folders in which remote sessions may name files: the mapped drives, and those that EXEC sp_windlass_remote_folder lists. An administrator on the server itself can map or list its folder.";
    50211, 14, only_on_the_server(what), "{what} is only possible in a session on the server itself (windlass sql --instance DIR, or its socket), as an administrator: it decides which files remote sessions can reach.";
    50212, 14, attach_denied(), "ATTACH and VACUUM INTO are not possible in a remote session: they open files by paths that are not checked. Use CREATE DATABASE ... FOR ATTACH, or BACKUP DATABASE.";
    50213, 16, password_in_procedure(statement), "{statement} with a password cannot be part of a procedure: its text, with the password, could be read in sys.sql_modules. Run it as a statement.";
    50220, 16, order_contradicted(one, other), "Nothing was restored: by its date, {one} is older than {other}, but by its LSN, or by the history when it was made, it is newer. The clock was set back between them, or the files of the database were put back from a copy without a restore, so which state is the newest cannot be told. Choose a set with --set N, or name only the media of the wanted one.";
    50221, 16, subsystem_not_supported(step, subsystem), "Step '{step}' is of the subsystem {subsystem}: jobs run steps of the subsystem TSQL only. Write the step in T-SQL, or run the program by a timer of the system.";
    50222, 16, agent_option_not_supported(parameter, reason), "{parameter} is not supported: {reason}.";
    50223, 16, agent_runs_already(folder), "The jobs of the instance in {folder} are run by another process. Stop it first: only one may run them.";
    50224, 16, agent_not_started(folder, reason), "The jobs of the instance in {folder} cannot be run: {reason}";
    50230, 16, mark_not_kept(name, database), "The transaction '{name}' was not begun: a mark needs a database of the page engine with the recovery model FULL, whose log backups keep it, and '{database}' is none. Omit WITH MARK, or ALTER DATABASE ... SET RECOVERY FULL.";
    50231, 16, mark_name_invalid(), "The transaction was not begun: the name of a mark cannot contain a line break.";
    50232, 16, standby_file_exists(file), "The standby file '{file}' exists already, and is not one of this database. Name another.";
    50233, 16, standby_of_sqlite(database), "STANDBY is for databases of the page engine, and '{database}' is a SQLite file. Use NORECOVERY, or restore a copy under another name.";
    50234, 10, chain_not_begun(database, error), "Warning: the differential backup of '{database}' is complete, but no chain of log backups begins with it: {error}. Make another one.";
    50235, 16, chain_has_ended(database), "There is a full backup of '{database}', but no chain of log backups since then: the database was restored, its recovery model was SIMPLE meanwhile, or another program has changed its data file. Make a full backup; log backups continue that.";
    50250, 10, log_kept(database, folder), "The log of '{database}' is kept from now on, in '{folder}'. Log backups begin with the next full or differential backup: make one. windlass serve follows the database all the time; without it, each log backup takes what can be proven to be all that was committed since the one before.";
    50251, 16, log_ends_at_gap(database, from, to, reason), "The log of '{database}' was backed up to a gap: commits between {from} and {to} may be missing ({reason}). The backup set is complete up to there, and counts. Make a full or differential backup, with which log backups go on behind the gap.";
    50252, 16, log_gap_open(database, from, to, reason), "The log of '{database}' has a gap: commits between {from} and {to} may be missing ({reason}). Make a full or differential backup, with which log backups begin again.";
    50253, 16, log_needs_folder(database), "The log of '{database}' cannot be kept: the instance has no folder for it, or the database is not registered. Use --instance DIR and CREATE DATABASE ... FOR ATTACH; or windlass follow FILE --to DIR, and windlass backup --log FILE --follow DIR.";
    50254, 10, log_not_kept(database), "The log of '{database}' is not kept any more, and what of it was not backed up is deleted.";
    50270, 16, database_of_sql_server(database), "Database '{database}' is one of SQL Server, and offline: its files are kept and can be backed up, but nothing opens them here. Attach them to a SQL Server, or read its tables with windlass extract.";
    50271, 16, restore_over_sql_server(database), "Database '{database}' is one of SQL Server. Drop it first (its files stay), or restore under another name.";
    50272, 16, sql_server_restore_broke_off(database), "The restore of '{database}' broke off while a differential was applied, so that its files are of no use. Begin again with the full backup, WITH REPLACE.";
    50290, 16, moment_not_reached(moment, reason), "No backups lead to {moment}: {reason}. Nothing was restored.";
    50291, 16, no_media_in_folder(folder, further), "There are no backups in '{folder}'{further}.";
    50292, 16, drill_needs_space(database, needed, most), "'{database}' takes {needed} bytes when it is restored, more than the {most} that the drill may use (--space).";
    50293, 16, drill_without_backups(database), "The history has no backup of '{database}' that is still there. Name its backups, or the folder that has them.";
    50294, 16, drill_answered_no(answer), "The query was answered with '{answer}': the first value of its first row must be neither missing, NULL, 0 nor empty.";
    50295, 16, drill_needs_own_media(database), "'{database}' is on media of SQL Server, whose databases cannot be opened here, so a drill proves nothing. windlass verify reads such media, windlass extract their tables.";
    50296, 16, ship_lacks_log(reached, next), "The log behind LSN {reached} is missing: the next log backup at hand, {next}, begins after it. Bring the backups between, or begin again in another place from a full backup. (windlass restore --to FILE recovers the copy as it is.)";
    50297, 16, ship_needs_log(), "None of these backups is of a database with log backups: shipping applies the log of databases in the recovery model FULL.";
    50298, 14, job_owner_disabled(owner), "The step was not run: the job's owner, the login '{owner}', is disabled, and the job was made or changed by a remote session.";
    50299, 16, restore_was_copied(path, other), "The unfinished restore at '{path}' is a copy of the one that was begun for '{other}', or was moved from there, and names that one's files: it is not continued here. Continue it there (for a moved folder: bring it back, or mount it under its old name), or begin again here with the full backup.";
    50300, 16, ship_other_fork(reached, newest), "The database was restored to an earlier state since, and has gone on from there: the newest backup, {newest}, is not of the history that the copy follows, which ends at LSN {reached} for it. Begin a new copy in another place from a full backup made since. (windlass restore --to FILE recovers this one as it is.)";
    50301, 16, ship_no_copy(path), "'{path}' is there, and is no copy that waits for log backups: it was promoted before, or is another database. It is left as it is. Name another place to begin a new copy.";
    50302, 16, other_parts_wait(parts, database), "{parts} of '{database}' wait for log backups already. End that restore first: RESTORE LOG with the log backups that are missing, then RESTORE DATABASE {database} WITH RECOVERY.";
    50303, 16, other_files_wait(files, database), "The data files '{files}' of '{database}' wait for log backups already. End that restore first (RESTORE LOG, then RESTORE DATABASE {database} WITH RECOVERY), or begin again with all files in one statement: FILE = 'a', FILE = 'b'.";
    50304, 16, overwritten_under_log(log, page), "Page {page} of the database is not the one that was copied from '{log}': a program that does not use SQLite, such as cp, has written the file while its log was in use. What SQLite reads of it is a mixture of two databases. It was not backed up. Close every program that uses it. Then, to keep what the file has now, move '{log}' and the -shm file beside it away, and check the database; or restore it from its last backup.";
    50305, 16, medium_of_another(to, held, database), "'{to}' was not overwritten: it holds backups of another database, {held}. Name another folder for '{database}' with --to, or back it up alone.";
    50306, 10, all_rehearsed(would, failed, skipped), "No backup was made. Databases that would be backed up: {would}; that would fail: {failed}; left out: {skipped}.";
    50307, 16, name_of_windows(name), "'{name}' is a name of Windows, and would be a file of an odd name here. Backup media, their folders, restored files and all names in T-SQL may begin with a drive (--drive, sp_windlass_drive); this name may not: give the file or folder itself.";
    50308, 16, dash_is_no_file(), "'-' names no file: media are not read from or written to a pipe. './-' names a file of that name.";
    50309, 16, last_filemark_cut(device, trouble), "'{device}' has lost its last bytes ({trouble}). Its backup sets are complete and can be restored; a backup that is appended to it writes the rest again.";
    50310, 16, times_contradict(later, earlier), "The clock was set back within this log: the commit at LSN {later} is later than the time to stop at, and the commit at LSN {earlier}, which was made after it, is not. Nothing was changed. Name the point by its LSN instead: STOPATMARK or STOPBEFOREMARK = 'lsn:N'.";
    50311, 10, end_is_the_moment(moment, last, ended), "No commit in the backups is later than {moment}. The last of them, {last}, ended at {ended} by its clock, which no other backup contradicts: the state is that of its end.";
    50312, 10, end_not_believed(set, next), "The clock was ahead at the end of {set}: {next} goes on behind it and ended earlier. Its end is not believed, only the times of commits.";
    50313, 16, ship_log_unusable(set, why), "{set} would bring the copy further, but {why}. If it is still being copied, the next round takes it; otherwise bring an intact copy of it. (windlass restore --to FILE recovers the copy as it is.)";
    50314, 17, no_thread(error), "{error}. The system lets this user, service or container have no more threads (ulimit -u, TasksMax, pids.max): raise that limit, or end other programs.";
    50315, 16, sets_unseen(device, why), "Nothing was restored: '{device}' may hold a newer state than the other media, and nobody can see what is on it: {why}. Make it readable, or bring an intact copy of it. For the state of the others, move it to another folder, or name the media themselves instead of their folder.";
    50316, 16, ship_sets_unseen(device, why), "'{device}' may bring the copy further, but nobody can see what is on it: {why}. If it is still being copied, the next round takes it; otherwise make it readable, or bring an intact copy of it. (windlass restore --to FILE recovers the copy as it is.)";
    50317, 10, ship_state_beyond(reached, set), "The copy ends at LSN {reached}. {set} has a later state, to which no log backup at hand leads yet.";
    50318, 16, ship_promotes_older(reached, set), "The copy was not recovered: it ends at LSN {reached}, and {set} has a later state, to which no log backup at hand leads. What was committed between would be lost. Bring the log backups behind the copy, or restore {set} instead. (windlass restore --to FILE recovers the copy as it is.)";
    50319, 16, no_place_for_log(device, folder, reason), "The log on '{device}' must be read to see which states it continues, and '{folder}' has no place for it: {reason}. Make room there, or name another folder in the environment variable TMPDIR.";
    50320, 10, log_names_changes(database, kilobytes), "The log of '{database}' names what has changed since the full backup: {kilobytes} KB are read.";
    50321, 10, time_comes_twice(time, first, second), "'{time}' comes twice, because clocks are set back. The first is taken: {first}. For the second, write '{second}'.";
    50322, 10, ship_waits_for_delay(), "No full backup is as old as --delay yet: the copy is begun with the first that is.";
    50323, 16, ship_waits_for_log(), "No log backup is among these yet, and the full backup of a SQLite file does not say whether its log is kept: the copy is begun when the first log backup is here. If there will be none, set the recovery model FULL (ALTER DATABASE ... SET RECOVERY FULL), or keep a copy by restores: windlass restore ... --to FILE --replace.";
    50324, 16, newest_backup_gone(database, finished, device), "Nothing was restored: the newest backup of '{database}' in the history, of {finished}, is not on '{device}' any more. Bring it back, name a moment before it that log backups reach (--at), or name the media whose state will do.";
    50325, 16, nothing_to_prove(), "Nothing was proved: the instance has no databases. Is it the right one?";
    50326, 16, pattern_names_none(pattern), "--only '{pattern}' names no database: nothing was backed up for it. Patterns distinguish upper and lower case.";
    50327, 16, not_of_sql_server(device, why), "'{device}' is no backup of SQL Server: {why}. (windlass header and verify read backups of Windlass.)";
    50328, 16, drive_of_server(letter, there, here), "The drive {letter}: is {there} for the server of the instance, which runs this, and '{here}' for this command. Map it there (EXEC sp_windlass_drive '{letter}', 'FOLDER'), or name the folder itself.";
    50330, 16, sql_server_full_only(database), "Database '{database}' is one of SQL Server, and offline: nothing changes it here, so that there is nothing to make a differential or log backup of. Make a full backup.";
    50331, 16, sql_server_option_refused(option, database), "{option} has no meaning for '{database}', whose files are SQL Server's.";
    50332, 16, sql_server_files_are_final(database), "This backup of '{database}' has the files of an offline database as they were: no other backup can be restored over it. Omit NORECOVERY, STANDBY and STOPAT.";
    50333, 16, sql_server_files_need_place(file), "Nothing says where file '{file}' goes, and paths in a backup are not used for files of SQL Server. Name it with MOVE.";
    50334, 10, database_file_empty(file), "'{file}' is empty: for SQLite, a database without tables. If there should be data in it, this is the wrong file, or its content is lost.";
    50335, 16, target_needs_replace(file), "There is a file '{file}'. Use --replace to overwrite it, or another target with --to FILE; --database NAME restores a registered database over its own files.";
    50336, 16, command_failed(reason), "{reason}";
    50337, 16, no_database_matches(place), "Nothing is backed up: {place} has no database that --only and --except leave.";
    50338, 10, all_backed_up(done, failed, skipped), "Databases backed up: {done}; failed: {failed}; left out: {skipped}.";
    50350, 16, credential_not_usable(name, why), "The credential '{name}' is not accepted: {why}.";
    50351, 16, credential_of_other_url(name, url), "The credential '{name}' is for URLs below its name, and is not used for '{url}': the store there would get requests signed with a key that is not its own.";
    50352, 16, credential_not_opened(name, why), "The secret of the credential '{name}' cannot be opened: {why}. Set it again: ALTER CREDENTIAL.";
    50353, 16, store_options_invalid(option, why), "{option} is not valid: {why}.";
    50354, 16, option_of_urls(option), "{option} is for URLs, and no device is one: it would do nothing.";
    50355, 16, secret_in_procedure(statement), "{statement} with a secret cannot be part of a procedure: its text, with the secret, could be read in sys.sql_modules. Run it as a statement.";
    50356, 10, set_part_right(part, parts, position, read, all), "Part {part} of {parts} of the backup set on file {position} was read, and is as it was written: {read} of {all}. The rest was not read.";
    50357, 16, no_part_of_sql_server(), "A backup that SQL Server wrote is verified as a whole: it has no index of its parts. Omit --subset.";
    50358, 10, set_part_empty(part, parts, position, all), "Part {part} of {parts} of the backup set on file {position} has none of its {all}: nothing was read. The set has too few chunks for so many parts.";
    50359, 16, sql_server_needs_folder(device, target), "'{device}' is a backup of SQL Server: a restore writes the files of its database into a folder, and '{target}' is no folder that exists. For its tables in a SQLite file: windlass extract {device} --to FILE. For its files: make the folder, and name it with --to; or name each file with --move LOGICAL=FILE.";
    50361, 16, written_set_unread(devices, reason), "The backup set was written to '{devices}', and the store has confirmed that, but it could not be read back: {reason}. Nobody has said that it is not there. Verify it (windlass verify) when the store can be read, and use it if it is whole. The history of the instance does not have it: make another backup, under another name, before the next differential one.";
    50363, 10, kept_for_unseen(stays, device, why), "{stays} for the sake of '{device}': the history has it there, and nobody can tell that it is gone: {why}. Mount or repair that place. If it is gone for good, say so: windlass expire --gone FOLDER, or delete its history (sp_delete_backuphistory).";
    50364, 16, nothing_is_gone(folder), "--gone '{folder}' says nothing: the history knows no backup there whose file is missing. msdb.dbo.backupmediafamily has the names that it knows (physical_device_name).";
    50365, 10, kept_upon_unseen(stays, device, why), "{stays}: a rule keeps what needs '{device}', and nobody can tell that this is gone: {why}. It stands for no other backup. Mount or repair that place, and name its folder too. If it is gone for good, say so: windlass expire --gone FOLDER, or delete its history (sp_delete_backuphistory).";
    50366, 16, relied_set_hidden(device, why), "'{device}' cannot be read now: {why}. It is not known to be damaged: what needs it stays as if it were whole, and nothing is deleted for its sake. Run the command again when it can be read.";
    50367, 16, copy_hidden(file, position, why), "'{file}' is a copy of backup set {position} that cannot be read now: {why} The set can be restored from the other copies. Run the command again when it can be read.";
    50369, 16, chain_on_target(database, device, position), "The log backup of '{database}' is refused: it would overwrite '{device}', whose backup set {position} is needed to restore it. Append it, or write it to another file. What is not needed any more can be deleted first.";
    50370, 10, lock_extended(device, lock), "'{device}' is {lock} now: newer backups that are locked need it.";
    50371, 16, lock_not_extended(device, error), "'{device}' is needed by newer backups that are locked for longer, and could not be locked as long: {error}. Give the key the right to retain objects, or retain it by hand.";
    50372, 10, not_read_back(device), "'{device}' was written as the store says, and not read back: its key may only write. Verify it where another key is.";
    50380, 16, log_ends_early(database, ended, reason), "The log of '{database}' was backed up to {ended}, not to the newest commit: {reason}. The backup set is complete up to there, and counts. Back up the log again when the spool has room.";
}

// What statements report besides SQL Server's messages.
#[rustfmt::skip]
texts! {
    NOTES, 50010, 10;
    accelerator_at_next_opening(), "The accelerator's configuration takes effect the next time the instance is opened.";
    accelerator_failed(problem), "{problem}; software compressed the rest";
    and_more(more), "And {more} more.";
    base_needed(needed, found), "According to the history, it needs {needed}. What was restored so far is {found}.";
    bytes_freed(megabytes), "{megabytes:.1} MB were freed.";
    bytes_would_be_freed(megabytes), "{megabytes:.1} MB would be freed.";
    checked(what), "Checked: {what}.";
    checkpoint_slow(seconds), "The checkpoint took {seconds:.1} seconds, longer than requested.";
    chunks_damaged(count, device, damage), "{count} of the set's chunks are damaged. The first, on '{device}': {damage}.";
    chunks_missing(count), "{count} of the set's chunks are missing.";
    damaged_backed_up(database), "'{database}' is damaged; it is backed up anyway.";
    database_attached(database), "The database '{database}' was attached.";
    database_created(database), "The database '{database}' was created.";
    database_detached(database), "The database '{database}' was detached.";
    database_left_out(database, why), "Left out: '{database}': {why}.";
    database_without_checksums(database), "'{database}' has no page checksums for CHECKSUM to verify. The backup itself has checksums.";
    differential_serves_no_parts(), "Pages and files cannot be restored from a differential backup: it is not known which extents have changed since it was made. Use the full backup it is based on.";
    drill_not_recorded(error), "Warning: the drill is not in the ledger of the instance: {error}. Its result is only what was printed.";
    exported(database, file, bytes), "Database '{database}' was exported to '{file}': {bytes} bytes.";
    file_deleted(file), "The file '{file}' was deleted.";
    file_left(file), "The file '{file}' was attached, not created by this instance; it was not deleted.";
    file_is_anothers(file, database, why), "'{file}' is not the file that was made for database '{database}': {why}. A MOVE that names it, with REPLACE, overwrites it.";
    instance_made(folder), "There is no instance in '{folder}'; a new one is made.";
    log_stopped_at(time, next), "The database is in the state of {time}; the next state that the log has: {next}.";
    part_is_anothers(file, database, why), "'{file}' is not the file that was made for database '{database}': {why}. A restore of single files replaces only the database's own. Move it away, or restore the whole database WITH MOVE and REPLACE.";
    file_left_to_others(file, why), "The file '{file}' was not deleted: {why}. If nobody needs it, delete it by hand.";
    file_written(file, database, path, bytes), "File '{file}' of database '{database}' was written to '{path}': {bytes} bytes.";
    file_unpacked(file, bytes), "The file '{file}' of SQL Server was written: {bytes} bytes.";
    files_deleted(count, database), "The {count} files of '{database}' were deleted.";
    files_are_sql_servers(), "The files are SQL Server's: the database is not registered here. windlass extract reads its tables.";
    sql_server_is_offline(database), "The files of '{database}' are SQL Server's: the database is listed here as OFFLINE. Attach its files to a SQL Server; windlass extract reads its tables.";
    sql_server_waits(database), "The files of '{database}' are SQL Server's, and wait for differentials, or for RESTORE DATABASE WITH RECOVERY.";
    finding(text), "{text}";
    found_on_device(device, finding), "'{device}': {finding}.";
    restoring_waits(name, place), "'{name}' waits for the next backup: windlass restore BACKUP {place}. To open it as it is: windlass restore {place}.";
    database_was_meant(name), "Did you mean '{name}', a database of the instance?";
    no_backup_named(), "No backup was named. Without one, a sequence of restores --no-recovery is ended, and here is none. To begin: windlass restore BACKUP --to FILE.";
    drive_of_this_run(letter), "The drive {letter}: is mapped for this run only: with --instance DIR the mapping stays.";
    give_another_place(), "Use another target with --to FILE or --move LOGICAL=FILE.";
    give_base(), "The file to write has no full backup of it. Back it up without --differential first; or name the file that has one: --base FILE.";
    give_base_known(), "The history of the instance has no full backup of it that counts: copies only and runs to NUL do not. Back it up without --differential first; or name the file that has one: --base FILE.";
    give_full_backup(), "A differential or log backup continues a full one: name the media of that too, and leave --set out.";
    give_name_and_replace(), "To overwrite the file, name it with --to FILE or --move LOGICAL=FILE, and give --replace; or name another place there.";
    give_replace_or_another_place(), "Use --replace to overwrite it, or another target with --to FILE or --move LOGICAL=FILE.";
    imported(file, database, bytes), "'{file}' was imported into database '{database}': {bytes} bytes.";
    imported_without_checksums(), "Its pages have no checksums, because the file has no room for them; import it with --page-checksums to make room.";
    integrity_check_passed(), "SQLite's integrity_check found no damage.";
    key_file_unusable(path, reason), "The key file {path} cannot be used: {reason}. Its recipients cannot read this set.";
    last_set_unfinished(device, trouble), "The last backup set on '{device}' is not complete: it was interrupted, or the file is a partial copy ({trouble}). The next backup to this file overwrites it.";
    log_not_truncated(database, error), "The log of '{database}' was backed up, but not truncated: {error}. The next log backup begins where this one began.";
    lost_is_as_base(), "The ranges listed are unchanged from the base.";
    lost_is_zero(), "The ranges listed are zero in the restored database.";
    media_password_ignored(device), "'{device}' is protected by a media password; it is read without it.";
    memory_at_next_opening(), "'max server memory (MB)', the size of the page engine's buffer pool, takes effect the next time the instance is opened.";
    more_findings(more, or_more), "... and {more}{or_more} more findings.";
    more_pages(more), "... and {more} more pages.";
    more_files_left_out(count), "Left out: {count} more files that may be media.";
    more_sets(more), "... and {more} more backup sets.";
    named_of_other_backups(files), "Named too, and of another backup: {files}. Name all stripes of one backup, and no others; windlass label FILE shows the media set of a file.";
    needed_base(expected, found), "The differential needs the full backup with BackupSetGUID {expected} (RESTORE HEADERONLY). The database was restored last from {found}.";
    not_checked(what), "Not checked: {what}.";
    noticed(what), "Noticed: {what}.";
    offload_at_next_opening(), "'hardware offload enabled' takes effect the next time the instance is opened.";
    offload_needed(step), "QAT_DEFLATE is not enabled on this instance. Run {step}, then open the instance again. Without a device software compresses. RESTORE needs none of this.";
    oldest_set_taken(later), "No FILE was given, so this is backup set 1, the oldest; the media contain {later} later ones (RESTORE HEADERONLY).";
    page_mismatch(file_id, page, file), "Page ({file_id}:{page}) in file '{file}' does not match its checksum.";
    pages_changed_since(pages, more), "Changed since the full backup (in extents of 8 pages): {pages}{more}. The backup does not have their current content, and pages are not rolled forward with log backups. Nothing was written. Restore only the other pages, or the whole database: this backup, then its last differential.";
    probed(option, done, pages, seconds, rate), "{option}: {done} {pages} pages in {seconds} seconds ({rate} MB/sec). Nothing was written: no backup was made.";
    quick_check_passed(), "SQLite's quick_check found no damage.";
    reason(error), "{error}.";
    relied_sets_read(sets, megabytes), "Before anything is deleted, what stays in its place is read back: {sets} ({megabytes:.1} MB).";
    relied_sets_would_be_read(sets, megabytes), "Before anything is deleted, what stays in its place would be read back: {sets} ({megabytes:.1} MB). Headers do not show whether they can be restored, so what is damaged may change these verdicts. --trust-headers reads nothing.";
    recovery_rehearsed(path), "Dry run: the restores into '{path}' would end; the database would be online.";
    restored_from_damage(database, started), "'{database}' was restored from the backup of {started}, which is damaged or was made of a damaged database.";
    restore_removed(path), "The unfinished restore of '{path}' was removed.";
    restore_removed_older_left(path, files), "The unfinished restore of '{path}' was removed. The database that it was to replace is still there and no longer registered: {files}. Attach it again (CREATE DATABASE ... FOR ATTACH), or delete the files.";
    restoring_sets(sets, why), "Restoring {sets}: {why}.";
    rolled_forward(moments, time, commit), "{moments} moments of the spool were applied. The database is in the state of {time}, after commit {commit}.";
    set_is_no_base(kind, would_do), "The backup set is {kind}. {would_do}";
    sequence_torn(name), "The differential was applied in part: '{name}' is left restoring, and is neither the full backup nor the differential. Repeat the command with good media, or with the full backup alone: it starts from the beginning.";
    sequence_waits(name, place, recovery), "Not all of the backups are restored: '{name}' is left restoring, and cannot be opened. To continue with the one that was refused, or with another differential or log backup that fits: windlass restore BACKUP {place}.{recovery}";
    set_left_out(set, why), "Left out: {set}: {why}.";
    set_not_on_all(position, partly), "Backup set {position} cannot be restored from these devices: {partly}.";
    set_rekeyed(position, on_media, beside), "Backup set {position} can be read by {on_media} (on the media) and {beside} (in the key file beside them).";
    set_repacked(original, database, position), "Backup set {original} of '{database}' was copied as backup set {position}.";
    sets_on_device(device, are, position), "On '{device}' there {are}; there is no set {position}.";
    settings_not_there(file), "{file}: not there";
    settings_read(file), "{file}: read";
    ranges_lost(what, range), "{what}: {range}.";
    ranges_lost_in_total(what, count, bytes), "{what}: {count} ranges with {bytes} bytes in total.";
    signing_key_made(private, public, fingerprint), "'{private}' signs backups, '{public}' checks them. The key's fingerprint: {fingerprint}.";
    spool_has_rest(folder, bytes), "Behind the end of the spool in '{folder}' are {bytes} bytes that are no records: what a follower is writing, or a crash has left.";
    spool_waits(name, place), "'{name}' is left restoring with the state of the backup, and cannot be opened. To restore to another moment: windlass restore {place} --follow DIR --at TIME. To take the state of the backup: windlass restore {place}.";
    trace(line), "{line}";
    transaction_aborted(), "The transaction was rolled back (XACT_ABORT is ON).";
    transaction_ended(), "The transaction was rolled back: this error ends its batch.";
    transaction_left_open(), "The transaction that was still open at the end of the session was rolled back.";
    writers_wait(database, size, seconds, because), "Writers of '{database}' ({size}) wait until the backup has read it, for about {seconds:.0} seconds: no temporary copy is made ({because}).";
    written_damaged(finding), "Damaged, and written unchanged: {finding}.";
}

// What is refused because it has no meaning here.
#[rustfmt::skip]
texts! {
    UNSUPPORTED, 50005, 16;
    add_log_not_supported(), "ADD LOG FILE is not supported. A database has one log, which grows automatically.";
    alter_database_not_supported(text), "ALTER DATABASE ... {text} is not supported. SET TARGET_RECOVERY_TIME, SET RECOVERY SIMPLE or FULL, and ADD FILE are.";
    asymmetric_key_not_supported(), "SERVER ASYMMETRIC KEY is not supported. It needs an external key manager. Use SERVER CERTIFICATE.";
    bulk_logged_not_supported(), "SET RECOVERY BULK_LOGGED is not supported. Nothing is minimally logged here, so it would save nothing; use FULL.";
    checkpoint_of_sqlite_file(), "CHECKPOINT of a SQLite file is not supported. PRAGMA wal_checkpoint runs a checkpoint of the current database; backups never need one.";
    create_without_filename(), "CREATE DATABASE without FILENAME is not supported. Specify the files with ON (NAME = x, FILENAME = '...'), or use an instance directory.";
    database_snapshot_not_supported(), "AS SNAPSHOT OF is not supported. Back the database up WITH COPY_ONLY and restore it under another name.";
    dbcc_not_supported(), "This DBCC command is not supported. DBCC CHECKDB checks a database for damage; DBCC SQLPERF (LOGSPACE) shows the space of logs; VACUUM gives the space of deleted rows back to the file system.";
    device_argument_not_supported(argument), "{argument} of sp_addumpdevice is not supported. It is obsolete in SQL Server; omit it.";
    export_of_sqlite_file(name), "An export of '{name}' is not supported. It is a SQLite file already, which other programs can open. To copy it while it is in use: windlass backup {name} --to FILE, then windlass restore FILE --to COPY; or VACUUM INTO 'COPY' in SQLite's shell.";
    file_backup_not_supported(), "A backup of single files or filegroups is not supported. A SQLite database is one file; omit FILE and FILEGROUP.";
    filegroup_not_supported(), "A filegroup other than PRIMARY is not supported. All data files share all pages.";
    files_without_log_not_supported(count), "A database of {count} files without one log is not supported. A SQLite database is one file; one of the page engine has data files and, LOG ON, one log.";
    format_not_supported(data_type, pattern), "FORMAT of a {data_type} as '{pattern}' is not supported. Dates take patterns such as 'yyyyMMdd_HHmmss', integers patterns of zeros.";
    from_snapshot_not_supported(), "FROM DATABASE_SNAPSHOT is not supported. Database snapshots are not supported; restore a backup.";
    frozen_engine_not_supported(), "A backup of a page engine database with --frozen is not supported. The backup writes to the database; omit the option.";
    goal_small_needs_auto(), "GOAL = SMALL without LEVEL = AUTO is not supported. It picks among the levels of ZSTD: add LEVEL = AUTO.";
    offload_by_configure(option), "Setting '{option}' by sp_configure is not supported. Use ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT).";
    offload_not_enabled(), "HARDWARE_OFFLOAD = ON while 'hardware offload enabled' is 0 is not supported. Run EXEC sp_configure 'hardware offload enabled', 1 and RECONFIGURE first.";
    rebuild_log_not_supported(), "FOR ATTACH_REBUILD_LOG is not supported. A SQLite database has no log file to rebuild; use FOR ATTACH.";
    renaming_not_supported(procedure), "EXEC {procedure} is not supported. For a table, write ALTER TABLE x RENAME TO y. Detach a database and attach it under its new name.";
    restore_log_of_parts(), "RESTORE LOG of single files or pages is not supported. It rolls the whole database forward; omit FILE and PAGE.";
    restore_of_log_alone(file), "A restore of the log file '{file}' alone is not supported. The log records which extents have changed; restore the whole database.";
    restore_of_parts_mixed(), "A restore of filegroups, or of pages together with files is not supported. Write PAGE = 'file:page, ...' once, or FILE = 'name' for each file; there are no filegroups.";
    restore_of_several_files(count), "A restore of a database of {count} files is not supported. A SQLite database is one file.";
    restore_of_sql_server_set(database), "A restore of a backup set of SQL Server ('{database}') from Windlass media is not supported. windlass unpack writes the file of SQL Server again, which RESTORE DATABASE and windlass extract can read.";
    restore_of_sqlite_parts(database), "A restore of parts of the SQLite file '{database}' is not supported. It is not known which pages of a SQLite file have changed since a backup; restore the whole file.";
    restore_over_engine(database), "A restore of a SQLite file over the page engine database '{database}' is not supported. Drop or detach it first, or restore under another name.";
    restore_over_sqlite_file(database), "A restore of a page engine database over the SQLite file '{database}' is not supported. Drop or detach it first, or restore under another name.";
    set_value_not_supported(name), "SET {name} with this value is not supported, and what follows may rely on it. The session behaves as with SQL Server's defaults: change the script to these, and omit the line.";
    several_backups_not_supported(), "A backup of several databases at once is not supported. Suspending databases for snapshots is not supported; back each one up.";
    several_logs_not_supported(), "More than one log file is not supported. A database has one log; give it their total size.";
    sql_server_recovery_not_supported(), "WITH NORECOVERY from a backup of SQL Server without a name for the database is not supported. Name the database, or name the full backup and its differentials together.";
    sqlbackup_call_not_supported(error), "This call of sqlbackup is not supported. {error}.";
    statement_not_supported(what, hint), "{what} is not supported. {hint}";
    statement_on_sqlite_file(name), "This statement on the SQLite file '{name}' is not supported. ALTER DATABASE sets its recovery model, PRAGMA statements its other settings; databases of the page engine have more.";
    tail_of_sqlite_not_supported(), "BACKUP LOG WITH NORECOVERY or STANDBY of a SQLite file is not supported. Its programs cannot be kept from committing: stop them, and make a log backup.";
    tape_device_not_supported(), "A tape device is not supported. Use 'disk'; the format is the same as on tape.";
    tape_not_supported(), "TAPE is not supported. Use DISK; the format is the same as on tape.";
    trace_flag_not_supported(flag), "Trace flag {flag} is not supported. Trace flags 3004 (phases), 3213 (buffer configuration), 3604 and 3605 are supported.";
    triple_des_not_supported(), "TRIPLE_DES_3KEY is not supported. Its 64-bit blocks are too short for backups (they repeat after a few dozen gigabytes), and it has no authentication. Use AES_256.";
    two_files_not_supported(), "A database of two files is not supported. A SQLite database is one file.";
    virtual_device_not_supported(), "VIRTUAL_DEVICE is not supported. Use DISK.";
}

// What is not implemented.
#[rustfmt::skip]
texts! {
    NOT_BUILT, 50001, 16;
    not_built_yet(feature, hint), "{feature} is not implemented. {hint}";
    sql_server_media(device), "Reading the media on '{device}', which SQL Server wrote, is not implemented. Only media of Windlass can be read here.";
    url_instead_of_file(url), "'{url}' is a URL where a file is expected; objects of a store are not implemented here. BACKUP TO URL, RESTORE FROM URL and, on the command line, backup, restore, verify and the commands that show media take URLs.";
}
