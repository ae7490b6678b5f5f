CREATE PROCEDURE sp_helpdevice @devname sysname = NULL AS
IF @devname IS NOT NULL AND NOT EXISTS (SELECT * FROM sys.backup_devices WHERE name = @devname)
BEGIN
    RAISERROR (15012, 16, 1, @devname)
    RETURN 1
END
SELECT name AS device_name, physical_name, CAST('disk, backup device' AS nvarchar(255)) AS description,
       CAST(16 AS int) AS status, CAST(2 AS smallint) AS cntrltype, CAST(0 AS int) AS size
FROM sys.backup_devices WHERE name = ISNULL(@devname, name) ORDER BY name
GO
CREATE PROCEDURE sp_databases AS
SELECT d.name AS DATABASE_NAME, CAST(SUM(f.size) * 8 AS int) AS DATABASE_SIZE, CAST(NULL AS varchar(254)) AS REMARKS
FROM sys.databases AS d LEFT JOIN sys.master_files AS f ON f.database_id = d.database_id
WHERE d.state = 0 GROUP BY d.name ORDER BY d.name
GO
CREATE PROCEDURE sp_who @loginame sysname = NULL AS
SELECT s.session_id AS spid, CAST(0 AS smallint) AS ecid, CAST(COALESCE(r.status, s.status) AS nchar(30)) AS status,
       CAST(s.login_name AS nvarchar(128)) AS loginame, CAST(s.host_name AS nchar(128)) AS hostname,
       CAST('0' AS char(5)) AS blk, CAST(s.database_name AS nvarchar(128)) AS dbname,
       CAST(COALESCE(r.command, 'AWAITING COMMAND') AS nchar(26)) AS cmd, COALESCE(r.request_id, 0) AS request_id
FROM sys.dm_exec_sessions AS s LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id
WHERE @loginame IS NULL OR @loginame = 'active' AND s.status <> 'sleeping' OR @loginame = s.login_name
      OR @loginame = CAST(s.session_id AS sysname)
ORDER BY s.session_id
GO
CREATE PROCEDURE sp_who2 @loginame sysname = NULL AS
SELECT CAST(s.session_id AS char(10)) AS SPID, UPPER(COALESCE(r.status, s.status)) AS Status,
       CAST(s.login_name AS nvarchar(128)) AS Login, CAST(s.host_name AS nvarchar(128)) AS HostName,
       CAST('  .' AS char(5)) AS BlkBy, CAST(s.database_name AS nvarchar(128)) AS DBName,
       CAST(COALESCE(r.command, 'AWAITING COMMAND') AS nvarchar(32)) AS Command, r.cpu_time AS CPUTime,
       CAST(NULL AS bigint) AS DiskIO,
       CONVERT(char(5), s.last_request_start_time, 1) + ' ' + CONVERT(char(8), s.last_request_start_time, 8) AS LastBatch,
       CAST(s.program_name AS nvarchar(128)) AS ProgramName, CAST(s.session_id AS char(10)) AS SPID,
       COALESCE(r.request_id, 0) AS REQUESTID
FROM sys.dm_exec_sessions AS s LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id
WHERE @loginame IS NULL OR @loginame = 'active' AND s.status <> 'sleeping' OR @loginame = s.login_name
      OR @loginame = CAST(s.session_id AS sysname)
ORDER BY s.session_id
GO
CREATE PROCEDURE sp_server_info @attribute_id int = NULL AS
SELECT i.attribute_id, CAST(i.attribute_name AS varchar(60)) AS attribute_name, CAST(i.attribute_value AS varchar(255)) AS attribute_value
FROM (SELECT 1 AS attribute_id, 'DBMS_NAME' AS attribute_name, 'Windlass' AS attribute_value
      UNION ALL SELECT 2, 'DBMS_VER', @@VERSION
      UNION ALL SELECT 10, 'OWNER_TERM', 'owner'
      UNION ALL SELECT 11, 'TABLE_TERM', 'table'
      UNION ALL SELECT 12, 'MAX_OWNER_NAME_LENGTH', '128'
      UNION ALL SELECT 13, 'TABLE_LENGTH', '128'
      UNION ALL SELECT 14, 'MAX_QUAL_LENGTH', '128'
      UNION ALL SELECT 15, 'COLUMN_LENGTH', '128'
      UNION ALL SELECT 16, 'IDENTIFIER_CASE', 'MIXED'
      UNION ALL SELECT 17, 'TX_ISOLATION', '8'
      UNION ALL SELECT 18, 'COLLATION_SEQ', 'collation=SQL_Latin1_General_CP1_CI_AS'
      UNION ALL SELECT 19, 'SAVEPOINT_SUPPORT', 'N'
      UNION ALL SELECT 20, 'MULTI_RESULT_SETS', 'Y'
      UNION ALL SELECT 22, 'ACCESSIBLE_TABLES', 'Y'
      UNION ALL SELECT 100, 'USERID_LENGTH', '128'
      UNION ALL SELECT 101, 'QUALIFIER_TERM', 'database'
      UNION ALL SELECT 102, 'NAMED_TRANSACTIONS', 'Y'
      UNION ALL SELECT 103, 'SPROC_AS_LANGUAGE', 'Y'
      UNION ALL SELECT 104, 'ACCESSIBLE_SPROC', 'Y'
      UNION ALL SELECT 106, 'RENAME_TABLE', 'N'
      UNION ALL SELECT 107, 'RENAME_COLUMN', 'N'
      UNION ALL SELECT 110, 'DDL_IN_TRANSACTION', 'Y'
      UNION ALL SELECT 111, 'DESCENDING_INDEXES', 'Y'
      UNION ALL SELECT 112, 'SP_RENAME', 'N'
      UNION ALL SELECT 113, 'REMOTE_SPROC', 'N') AS i
WHERE i.attribute_id = ISNULL(@attribute_id, i.attribute_id) ORDER BY i.attribute_id
GO
CREATE PROCEDURE sp_spaceused @objname nvarchar(776) = NULL, @updateusage varchar(5) = 'false', @mode varchar(11) = 'ALL',
                              @oneresultset bit = 0, @include_total_xtp_storage bit = 0 AS
DECLARE @pages bigint, @data bigint, @size bigint, @used bigint, @count bigint, @text nvarchar(1000)
IF @objname IS NULL
BEGIN
    SELECT @size = SUM(size), @pages = SUM(CASE type WHEN 0 THEN size END) FROM sys.database_files
    SELECT @used = SUM(pgsize) FROM dbstat
    SELECT @data = SUM(p.pgsize) FROM dbstat AS p JOIN sqlite_schema AS s ON s.name = p.name WHERE s.type = 'index'
    IF @oneresultset = 0
    BEGIN
        SELECT DB_NAME() AS database_name, CAST(CAST(@size / 128.0 AS decimal(18, 2)) AS varchar(15)) + ' MB' AS database_size,
               CAST(CAST((@pages * 8192 - @used) / 1048576.0 AS decimal(18, 2)) AS varchar(15)) + ' MB' AS [unallocated space]
        SELECT CAST(@used / 1024 AS varchar(15)) + ' KB' AS reserved,
               CAST((@used - ISNULL(@data, 0)) / 1024 AS varchar(15)) + ' KB' AS data,
               CAST(ISNULL(@data, 0) / 1024 AS varchar(15)) + ' KB' AS index_size, '0 KB' AS unused
    END
    ELSE
        SELECT DB_NAME() AS database_name, CAST(CAST(@size / 128.0 AS decimal(18, 2)) AS varchar(15)) + ' MB' AS database_size,
               CAST(CAST((@pages * 8192 - @used) / 1048576.0 AS decimal(18, 2)) AS varchar(15)) + ' MB' AS [unallocated space],
               CAST(@used / 1024 AS varchar(15)) + ' KB' AS reserved,
               CAST((@used - ISNULL(@data, 0)) / 1024 AS varchar(15)) + ' KB' AS data,
               CAST(ISNULL(@data, 0) / 1024 AS varchar(15)) + ' KB' AS index_size, '0 KB' AS unused
    RETURN 0
END
SELECT @objname = PARSENAME(@objname, 1)
IF NOT EXISTS (SELECT * FROM sys.objects WHERE name = @objname AND type = 'U')
BEGIN
    SET @text = DB_NAME()
    RAISERROR (15009, 16, 1, @objname, @text)
    RETURN 1
END
SELECT @used = SUM(p.pgsize), @data = SUM(CASE s.type WHEN 'table' THEN p.pgsize END)
FROM dbstat AS p JOIN sqlite_schema AS s ON s.name = p.name WHERE s.tbl_name = @objname
SET @text = N'SELECT @n = COUNT(*) FROM ' + QUOTENAME(@objname)
EXEC sp_executesql @text, N'@n bigint OUTPUT', @n = @count OUTPUT
SELECT name, CAST(@count AS char(20)) AS rows, CAST(@used / 1024 AS varchar(15)) + ' KB' AS reserved,
       CAST(@data / 1024 AS varchar(15)) + ' KB' AS data, CAST((@used - @data) / 1024 AS varchar(15)) + ' KB' AS index_size,
       '0 KB' AS unused
FROM sys.objects WHERE name = @objname AND type = 'U'
