SET NOCOUNT ON
DECLARE @folder nvarchar(260) = N'd:\backup', @name sysname, @state nvarchar(60), @file nvarchar(400), @failed int = 0, @count int = 0
DECLARE @log TABLE (name sysname, [file] nvarchar(400), seconds int, error nvarchar(2000))
DECLARE @begun datetime, @oldest datetime = DATEADD(day, -14, GETDATE())

DECLARE each CURSOR LOCAL FAST_FORWARD FOR
    SELECT name, state_desc FROM sys.databases
    WHERE name NOT IN ('master', 'msdb', 'tempdb', 'model')
    ORDER BY name
OPEN each
FETCH NEXT FROM each INTO @name, @state
WHILE @@FETCH_STATUS = 0
BEGIN
    SET @count += 1
    SET @begun = GETDATE()
    SET @file = @folder + N'\' + @name + N'_' + CONVERT(nvarchar(8), GETDATE(), 112)
        + REPLACE(CONVERT(nvarchar(12), GETDATE(), 114), ':', '') + N'.bak'
    BEGIN TRY
        IF @state <> 'ONLINE'
            RAISERROR (N'The database is %s.', 16, 1, @state)
        BACKUP DATABASE @name TO DISK = @file WITH COMPRESSION, CHECKSUM, FORMAT
        RESTORE VERIFYONLY FROM DISK = @file WITH CHECKSUM
        INSERT INTO @log VALUES (@name, @file, DATEDIFF(second, @begun, GETDATE()), NULL)
    END TRY
    BEGIN CATCH
        SET @failed += 1
        INSERT INTO @log VALUES (@name, @file, DATEDIFF(second, @begun, GETDATE()),
            CAST(ERROR_NUMBER() AS nvarchar(10)) + N': ' + ERROR_MESSAGE())
    END CATCH
    FETCH NEXT FROM each INTO @name, @state
END
CLOSE each
DEALLOCATE each

-- Old files go only after a night in which there were databases, and every one was backed up.
IF @failed = 0 AND @count > 0
    EXEC master.dbo.xp_delete_file 0, @folder, N'bak', @oldest
SELECT name, [file], error FROM @log ORDER BY name
IF @failed > 0
    RAISERROR (N'%d of %d databases were not backed up.', 16, 1, @failed, @count)
IF @count = 0
    RAISERROR (N'There are no databases to back up: is this the right instance?', 16, 1)
