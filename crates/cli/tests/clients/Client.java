// mssql-jdbc
import java.nio.file.*;
import java.sql.*;
import java.util.*;

public class Client {
    static String port, mode, authority, folder;

    static Connection connect(String password) throws SQLException {
        String encrypt = mode.equals("plain") ? "false" : mode.equals("tls") ? "true" : "strict";
        // In TDS 8.0 the driver trusts nothing unseen; it takes the server's own certificate.
        String trust = mode.equals("strict")
            ? ";serverCertificate=" + Path.of(authority).resolveSibling("server.pem") : ";trustServerCertificate=true";
        return DriverManager.getConnection("jdbc:sqlserver://127.0.0.1:" + port + ";encrypt=" + encrypt
            + trust + ";user=tester;password=" + password + ";loginTimeout=20");
    }

    static void script(Statement statement, Path path) throws Exception {
        for (String batch : Files.readString(path).split("\nGO\n")) {
            if (batch.isBlank()) continue;
            boolean isRows = statement.execute(batch);
            while (isRows || statement.getUpdateCount() != -1) {
                if (isRows && path.endsWith("history.sql")) print(statement.getResultSet());
                isRows = statement.getMoreResults();
            }
        }
    }

    static void print(ResultSet rows) throws SQLException {
        while (rows.next()) {
            var values = new StringJoiner("|");
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) values.add(Objects.toString(rows.getString(i), "NULL"));
            System.out.println(values);
        }
    }

    public static void main(String[] given) throws Exception {
        port = given[0]; mode = given[2]; authority = given[3]; folder = given[4];
        Connection connection = connect(given[1]);
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT 1");
        rows.next();
        System.out.println("one " + rows.getInt(1));
        PreparedStatement pair = connection.prepareStatement("SELECT ?, ?");
        pair.setNString(1, "ä€😀"); pair.setInt(2, 7);
        rows = pair.executeQuery(); rows.next();
        System.out.println("unicode " + rows.getString(1) + " " + rows.getInt(2));
        rows = statement.executeQuery("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)");
        long count = 0, sum = 0;
        while (rows.next()) { count++; sum += rows.getInt(1); }
        System.out.println("rows " + count + " " + sum);
        StringBuilder columns = new StringBuilder("SELECT ");
        for (int i = 0; i < 150; i++) columns.append(i > 0 ? ", " : "").append("CAST(NULL AS int) AS c").append(i).append(", ").append(i).append(" AS d").append(i);
        rows = statement.executeQuery(columns.toString()); rows.next();
        sum = 0;
        for (int i = 1; i <= 300; i++) sum += rows.getInt(i);
        System.out.println("wide " + rows.getMetaData().getColumnCount() + " " + sum);
        statement.execute("SELECT 1; SELECT N'two'");
        rows = statement.getResultSet(); rows.next();
        int first = rows.getInt(1);
        statement.getMoreResults(); rows = statement.getResultSet(); rows.next();
        System.out.println("sets " + first + " " + rows.getString(1));
        CallableStatement call = connection.prepareCall("{call sp_executesql(?, ?, ?, ?)}");
        call.setNString(1, "SET @o = @i * 2"); call.setNString(2, "@i int, @o int OUTPUT"); call.setInt(3, 21);
        call.registerOutParameter(4, Types.INTEGER);
        call.execute();
        System.out.println("output " + call.getInt(4));
        try { statement.execute("SELECT * FROM nosuch"); } catch (SQLException error) { System.out.println("error " + error.getErrorCode()); }
        connection.setAutoCommit(false);
        statement.executeQuery("SELECT COUNT(*) FROM sys.databases");
        rows = statement.executeQuery("SELECT @@TRANCOUNT"); rows.next();
        System.out.println("transaction " + rows.getInt(1));
        connection.rollback(); connection.setAutoCommit(true);
        statement.execute("BACKUP DATABASE app TO DISK = '" + folder + "/jdbc-" + mode + ".bak' WITH INIT, STATS = 10");
        int told = 0;
        for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) if (warning.getErrorCode() == 3211) told++;
        rows = statement.executeQuery("SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'"); rows.next();
        System.out.println("sets of backups " + (rows.getInt(1) > 0 && told >= 1 ? "True" : "" + told));
        try { connect("wrong"); } catch (SQLException error) { System.out.println("wrong " + error.getErrorCode()); }
        Statement waiting = connection.createStatement();
        new Thread(() -> { try { Thread.sleep(300); waiting.cancel(); } catch (Exception error) { } }).start();
        try { waiting.execute("WAITFOR DELAY '00:10:00'"); } catch (SQLException error) { System.out.println("cancelled ECANCEL"); }
        rows = statement.executeQuery("SELECT 42"); rows.next();
        System.out.println("after " + rows.getInt(1));
        try (var files = Files.list(Path.of(folder))) {
            for (Path path : files.filter(file -> file.toString().endsWith(".sql")).sorted().toList()) script(statement, path);
        }
        connection.close();
    }
}
