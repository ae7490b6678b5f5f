"""mssql-python, which is Microsoft's ODBC driver."""
import glob
import sys
from mssql_python import connect as driver

port, password, mode, authority, folder = sys.argv[1:6]


def connect(given):
    protection = {"plain": "Encrypt=no", "tls": "Encrypt=yes;TrustServerCertificate=yes",
                  "strict": f"Encrypt=strict;ServerCertificate={authority}"}[mode]
    made = driver(f"Server=127.0.0.1,{port};UID=tester;PWD={given};{protection};")
    made.autocommit = True
    return made


connection = connect(password)
cursor = connection.cursor()


def rows(text, *values):
    cursor.execute(text, *values)
    return cursor.fetchall()


print("one", rows("SELECT 1")[0][0])
print("unicode", *rows("SELECT ?, ?", ("ä€😀", 7))[0])
many = rows("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
            "SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)")
print("rows", len(many), sum(row[0] for row in many))
wide = rows("SELECT " + ", ".join(f"CAST(NULL AS int) AS c{i}, {i} AS d{i}" for i in range(150)))
print("wide", len(wide[0]), sum(value or 0 for value in wide[0]))
cursor.execute("SELECT 1; SELECT N'two'")
first = cursor.fetchall()[0][0]
cursor.nextset()
print("sets", first, cursor.fetchall()[0][0])
print("output", rows("SET NOCOUNT ON; DECLARE @o int; EXEC sp_executesql N'SET @o = @i * 2', N'@i int, @o int OUTPUT', 21, @o OUTPUT; SELECT @o")[0][0])
try:
    cursor.execute("SELECT * FROM nosuch")
except Exception as error:
    print("error", 208 if "Invalid object name 'nosuch'" in str(error) else error)
connection.autocommit = False
print("transaction", rows("SELECT @@TRANCOUNT")[0][0])
connection.rollback()
connection.autocommit = True
cursor.execute(f"BACKUP DATABASE app TO DISK = '{folder}/odbc-{mode}.bak' WITH INIT, STATS = 10")
while cursor.nextset():
    pass
print("sets of backups", rows("SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'")[0][0] > 0)
try:
    connect("wrong")
except Exception as error:
    print("wrong", 18456 if "Login failed for user 'tester'" in str(error) else error)


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
