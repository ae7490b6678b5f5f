"""pymssql, which is FreeTDS' DB-Library."""
import glob
import sys
import pymssql

port, password, mode, authority, folder = sys.argv[1:6]


def connect(given):
    encryption = "require" if mode == "tls" else "off"
    return pymssql.connect(server="127.0.0.1", port=int(port), user="tester", password=given,
                           autocommit=True, tds_version="7.4", encryption=encryption)


connection = connect(password)
cursor = connection.cursor()


def rows(text, *values):
    cursor.execute(text, *values)
    return cursor.fetchall()


print("one", rows("SELECT 1")[0][0])
print("unicode", *rows("SELECT %s, %d", ("ä€😀", 7))[0])
number, text = 0, ""
many = rows("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
            "SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)")
print("rows", len(many), sum(row[0] for row in many))
wide = rows("SELECT " + ", ".join(f"CAST(NULL AS int) AS c{i}, {i} AS d{i}" for i in range(150)))
print("wide", len(wide[0]), sum(value or 0 for value in wide[0]))
cursor.execute("SELECT 1; SELECT N'two'")
first = cursor.fetchall()[0][0]
cursor.nextset()
print("sets", first, cursor.fetchall()[0][0])
print("output", rows("DECLARE @o int; EXEC sp_executesql N'SET @o = @i * 2', N'@i int, @o int OUTPUT', 21, @o OUTPUT; SELECT @o")[0][0])
try:
    cursor.execute("SELECT * FROM nosuch")
except pymssql.Error as error:
    print("error", error.args[0])
cursor.execute("BEGIN TRAN")
print("transaction", rows("SELECT @@TRANCOUNT")[0][0])
cursor.execute("ROLLBACK")
cursor.execute(f"BACKUP DATABASE app TO DISK = '{folder}/dblib-{mode}.bak' WITH INIT, STATS = 10")
print("sets of backups", rows("SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'")[0][0] > 0)
try:
    connect("wrong")
except pymssql.Error as error:
    print("wrong", 18456 if "18456" in str(error) else error)


def script(path):
    """Runs a file's batches; the rows of the last."""
    with open(path, encoding="utf-8") as file:
        batches = [batch for batch in file.read().split("\nGO\n") if batch.strip()]
    for batch in batches:
        cursor.execute(batch)
        found = []
        while True:
            found = cursor.fetchall() if cursor.description else found
            if not cursor.nextset():
                break
    return found


for path in sorted(glob.glob(f"{folder}/*.sql")):
    found = script(path)
    if path.endswith("history.sql"):
        for row in found:
            print("|".join("NULL" if value is None else str(value) for value in row))
