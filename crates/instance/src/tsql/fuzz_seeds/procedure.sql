CREATE PROCEDURE p @a int = 1, @b nvarchar(10) OUTPUT AS SET @b = STR(@a) IF @a < 5 BEGIN SET @a += 1 EXEC p @a, @b OUTPUT END RETURN @a
GO
DECLARE @x nvarchar(10), @r int
EXEC @r = p 2, @x OUTPUT
SELECT @r, @x, @@NESTLEVEL
EXEC sp_executesql N'SELECT @p + 1', N'@p decimal(10,2)', @p = 1.5
EXEC ('PRINT 1 RAISERROR(''x %d'', 16, 1, 3)')
