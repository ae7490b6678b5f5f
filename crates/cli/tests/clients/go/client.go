// go-mssqldb
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

var port, mode, authority, folder string

func connect(password string) *sql.DB {
	protection := map[string]string{
		"plain":  "encrypt=disable",
		"tls":    "encrypt=true&trustservercertificate=true",
		"strict": "encrypt=strict&certificate=" + authority + "&hostNameInCertificate=localhost",
	}[mode]
	made, err := sql.Open("sqlserver", "sqlserver://tester:"+password+"@127.0.0.1:"+port+"?"+protection)
	check(err)
	made.SetMaxOpenConns(1)
	return made
}

func check(err error) {
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

// Runs a file's batches; prints the rows of the history's.
func script(db *sql.DB, path string) {
	text, err := os.ReadFile(path)
	check(err)
	for _, batch := range strings.Split(string(text), "\nGO\n") {
		if strings.TrimSpace(batch) == "" {
			continue
		}
		if filepath.Base(path) != "history.sql" {
			_, err = db.Exec(batch)
			check(err)
			continue
		}
		rows, err := db.Query(batch)
		check(err)
		names, _ := rows.Columns()
		values := make([]sql.NullString, len(names))
		places := make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		for rows.Next() {
			check(rows.Scan(places...))
			texts := []string{}
			for _, value := range values {
				if !value.Valid {
					value.String = "NULL"
				}
				texts = append(texts, value.String)
			}
			fmt.Println(strings.Join(texts, "|"))
		}
		check(rows.Err())
	}
}

func main() {
	port, mode, authority, folder = os.Args[1], os.Args[3], os.Args[4], os.Args[5]
	db := connect(os.Args[2])
	var number, second int
	var text string
	check(db.QueryRow("SELECT 1").Scan(&number))
	fmt.Println("one", number)
	check(db.QueryRow("SELECT @p1, @p2", "ä€😀", 7).Scan(&text, &number))
	fmt.Println("unicode", text, number)
	rows, err := db.Query("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)")
	check(err)
	count, sum := 0, 0
	for rows.Next() {
		check(rows.Scan(&number, &text))
		count, sum = count+1, sum+number
	}
	check(rows.Err())
	fmt.Println("rows", count, sum)
	columns := []string{}
	for i := range 150 {
		columns = append(columns, fmt.Sprintf("CAST(NULL AS int) AS c%d, %d AS d%d", i, i, i))
	}
	rows, err = db.Query("SELECT " + strings.Join(columns, ", "))
	check(err)
	names, _ := rows.Columns()
	values := make([]sql.NullInt64, len(names))
	places := make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	rows.Next()
	check(rows.Scan(places...))
	rows.Close()
	sum = 0
	for _, value := range values {
		sum += int(value.Int64)
	}
	fmt.Println("wide", len(names), sum)
	rows, err = db.Query("SELECT 1; SELECT N'two'")
	check(err)
	for rows.Next() {
		check(rows.Scan(&second))
	}
	rows.NextResultSet()
	rows.Next()
	check(rows.Scan(&text))
	rows.Close()
	fmt.Println("sets", second, text)
	var doubled int
	_, err = db.Exec("SET @o = @i * 2", sql.Named("i", 21), sql.Named("o", sql.Out{Dest: &doubled}))
	check(err)
	fmt.Println("output", doubled)
	var failure mssql.Error
	_, err = db.Exec("SELECT * FROM nosuch")
	errors.As(err, &failure)
	fmt.Println("error", failure.Number)
	transaction, err := db.Begin()
	check(err)
	check(transaction.QueryRow("SELECT @@TRANCOUNT").Scan(&number))
	fmt.Println("transaction", number)
	check(transaction.Rollback())
	_, err = db.Exec("BACKUP DATABASE app TO DISK = '" + folder + "/go-" + mode + ".bak' WITH INIT, STATS = 10")
	check(err)
	check(db.QueryRow("SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'").Scan(&number))
	if number > 0 {
		fmt.Println("sets of backups True")
	}
	err = connect("wrong").Ping()
	errors.As(err, &failure)
	fmt.Println("wrong", failure.Number)
	waiting, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(waiting, "WAITFOR DELAY '00:10:00'")
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Println("cancelled ECANCEL")
	}
	check(db.QueryRow("SELECT 42").Scan(&number))
	fmt.Println("after", number)
	paths, err := filepath.Glob(folder + "/*.sql")
	check(err)
	for _, path := range paths {
		script(db, path)
	}
}
