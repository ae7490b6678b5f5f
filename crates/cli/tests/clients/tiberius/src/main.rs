//! tiberius

use std::path::Path;

use futures_util::TryStreamExt as _;
use tiberius::error::Error;
use tiberius::{AuthMethod, ColumnData, Command, Config, EncryptionLevel, Row};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

type Client = tiberius::Client<Compat<TcpStream>>;

struct Place {
    port: u16,
    mode: String,
    authority: String,
}

impl Place {
    async fn connect(&self, password: &str) -> Result<Client, Error> {
        let mut config = Config::new();
        config.host("localhost");
        config.port(self.port);
        config.authentication(AuthMethod::sql_server("tester", password));
        config.encryption(match self.mode.as_str() {
            "plain" => EncryptionLevel::NotSupported,
            "tls" => EncryptionLevel::Required,
            _ => EncryptionLevel::Strict,
        });
        if self.mode != "plain" {
            config.trust_cert_ca(&self.authority);
        }
        let tcp = TcpStream::connect(("127.0.0.1", self.port)).await?;
        tcp.set_nodelay(true)?;
        Client::connect(config, tcp.compat_write()).await
    }
}

async fn rows(client: &mut Client, text: &str) -> Result<Vec<Row>, Error> {
    client.simple_query(text).await?.into_first_result().await
}

fn number(row: &Row, column: usize) -> i32 {
    row.get(column).unwrap_or(0)
}

fn code<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => "none".to_owned(),
        Err(error) => error
            .code()
            .map_or_else(|| error.to_string(), |code| code.to_string()),
    }
}

/// Runs a file's batches; prints the rows of the history's.
async fn script(client: &mut Client, path: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(path)?;
    for batch in text
        .split("\nGO\n")
        .filter(|batch| !batch.trim().is_empty())
    {
        let sets = client.simple_query(batch).await?.into_results().await?;
        for row in sets
            .iter()
            .flatten()
            .filter(|_| path.ends_with("history.sql"))
        {
            let values: Vec<String> = row
                .cells()
                .map(|(_, value)| match value {
                    ColumnData::String(Some(text)) => text.to_string(),
                    ColumnData::I32(Some(number)) => number.to_string(),
                    ColumnData::String(None) | ColumnData::I32(None) => "NULL".to_owned(),
                    other => format!("{other:?}"),
                })
                .collect();
            println!("{}", values.join("|"));
        }
    }
    Ok(())
}

async fn talk(place: &Place, password: &str, folder: &str) -> Result<(), Error> {
    let mut client = place.connect(password).await?;
    println!(
        "one {}",
        number(&rows(&mut client, "SELECT 1").await?[0], 0)
    );

    let stream = client.query("SELECT @P1, @P2", &[&"ä€😀", &7i32]).await?;
    let found = stream.into_first_result().await?;
    let text: &str = found[0].get(0).unwrap_or_default();
    println!("unicode {text} {}", number(&found[0], 1));

    let many = "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
                SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)";
    let stream = client.simple_query(many).await?.into_row_stream();
    let add =
        |(count, sum), row: Row| async move { Ok((count + 1, sum + i64::from(number(&row, 0)))) };
    let (count, sum) = stream.try_fold((0, 0i64), add).await?;
    println!("rows {count} {sum}");

    let pair = |i| format!("CAST(NULL AS int) AS c{i}, {i} AS d{i}");
    let columns: Vec<String> = (0..150).map(pair).collect();
    let wide = rows(&mut client, &format!("SELECT {}", columns.join(", "))).await?;
    let sum: i32 = (0..wide[0].len()).map(|i| number(&wide[0], i)).sum();
    println!("wide {} {sum}", wide[0].len());

    let sets = client.simple_query("SELECT 1; SELECT N'two'").await?;
    let sets = sets.into_results().await?;
    let second: &str = sets[1][0].get(0).unwrap_or_default();
    println!("sets {} {second}", number(&sets[0][0], 0));

    let mut command = Command::new("sp_executesql");
    command.bind_param("@stmt", "SET @o = @i * 2");
    command.bind_param("@params", "@i int, @o int OUTPUT");
    command.bind_param("@i", 21i32);
    command.bind_out_param("@o", 0i32);
    let result = command
        .exec(&mut client)
        .await?
        .into_command_result()
        .await?;
    println!(
        "output {}",
        result.try_return_value::<i32>("@o")?.unwrap_or(0)
    );

    println!(
        "error {}",
        code(rows(&mut client, "SELECT * FROM nosuch").await)
    );

    client.begin_transaction().await?;
    println!(
        "transaction {}",
        number(&rows(&mut client, "SELECT @@TRANCOUNT").await?[0], 0)
    );
    client.rollback_transaction().await?;

    let file = format!("{folder}/tiberius-{}.bak", place.mode);
    let backup = format!("BACKUP DATABASE app TO DISK = '{file}' WITH INIT, STATS = 10");
    rows(&mut client, &backup).await?;
    let sets = "SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'";
    if number(&rows(&mut client, sets).await?[0], 0) > 0 {
        println!("sets of backups True");
    }
    println!("wrong {}", code(place.connect("wrong").await));

    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == "sql"))
        .collect();
    paths.sort();
    for path in paths {
        script(&mut client, &path).await?;
    }
    client.close().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let given: Vec<String> = std::env::args().collect();
    let [_, port, password, mode, authority, folder] = given.as_slice() else {
        panic!("client PORT PASSWORD MODE AUTHORITY FOLDER");
    };
    let place = Place {
        port: port.parse().expect("a port"),
        mode: mode.clone(),
        authority: authority.clone(),
    };
    if let Err(error) = talk(&place, password, folder).await {
        println!("failed {error:?}");
        std::process::exit(1);
    }
}
