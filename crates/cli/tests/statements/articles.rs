//! The scripts of the articles that the project was made from, unchanged.

use crate::support::{Place, article, make_database, rows};

pub(crate) const ZSTD: &str = "000_82f888a7bd3e45f1.txt";
pub(crate) const QAT: &str = "001_f5e85e5487702591.txt";

/// The part of a text between two lines.
pub(crate) fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).expect(from);
    let rest = &text[start..];
    &rest[..rest.find(to).expect(to)]
}

#[test]
fn every_backup_and_restore_of_the_zstd_article_runs() {
    let Some(text) = article(ZSTD) else { return };
    let place = Place::new();
    make_database(&place.path("so.db"), 3000);
    let script = between(
        &text,
        "--Backups to disk",
        "RESTORE DATABASE StackOverflow50_zstdlow",
    );
    std::fs::write(place.path("article.sql"), script).expect("the script");
    let run = place.succeed(&[
        "sql",
        "-i",
        "article.sql",
        "--json",
        "--attach",
        "StackOverflow50=so.db",
        "--drive",
        &format!("d={}", place.text("")),
    ]);
    let numbers = run.numbers();
    let backups = numbers.iter().filter(|number| **number == 3014).count();
    assert_eq!(backups, 10, "five to disk, five to NUL");
    assert!(numbers.contains(&3211), "STATS = 5 asks for progress");
    let headers: Vec<_> = run
        .results()
        .into_iter()
        .take(5)
        .map(|result| result[0].clone())
        .collect();
    let reported: Vec<_> = headers
        .iter()
        .map(|row| {
            (
                row["CompressionAlgorithm"].as_str(),
                row["CompressionLevel"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            (None, None),
            (Some("MS_XPRESS"), None),
            (Some("ZSTD"), Some("LOW")),
            (Some("ZSTD"), Some("MEDIUM")),
            (Some("ZSTD"), Some("HIGH")),
        ],
        "the article regrets that the level cannot be seen"
    );
    assert_eq!(run.results()[5][0]["Type"], "D");
}

#[test]
fn the_articles_database_of_four_data_files_is_restored_unchanged() {
    let Some(text) = article(ZSTD) else { return };
    let place = Place::new();
    let folder = "SQLINSTALL/MSSQL17.SQL202520/MSSQL/DATA";
    std::fs::create_dir_all(place.path(folder)).expect("a folder");
    let file = |name: &str| format!("(NAME = {name}, FILENAME = 'D:\\{name}.file')");
    let data: Vec<_> = (1..=4)
        .map(|number| file(&format!("StackOverflow2013_{number}")))
        .collect();
    let make = format!(
        "CREATE DATABASE StackOverflow50 ON {} LOG ON {}\nGO\nUSE StackOverflow50\nGO\n\
         CREATE TABLE posts(id INTEGER PRIMARY KEY, body TEXT);\n\
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
         INSERT INTO posts SELECT i, hex(randomblob(60)) FROM n\nGO\nUSE master\nGO\n",
        data.join(", "),
        file("StackOverflow2013_log"),
    );
    let backup = between(
        &text,
        "--Backup with ZSTD Low compression",
        "--Backup with ZSTD Medium",
    );
    let restore = between(&text, "RESTORE DATABASE StackOverflow50_zstdlow", ";");
    let script = format!(
        "{make}{backup}\nGO\n{restore};\nGO\nUSE StackOverflow50_zstdlow\nGO\n\
         SELECT count(*) AS posts FROM posts; PRAGMA integrity_check"
    );
    let drive = format!("d={}", place.text(""));
    let run = place.sql_with(&["--json", "--drive", &drive], &script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let results = run.results();
    let last = &results[results.len() - 2..];
    assert_eq!(last[0][0]["posts"], 20000);
    assert_eq!(last[1][0]["integrity_check"], "ok");
    let processed = run
        .numbers()
        .iter()
        .filter(|number| **number == 4035)
        .count();
    assert_eq!(
        processed, 10,
        "four data files and a log, backed up and restored"
    );
    assert!(
        place
            .path(&format!("{folder}/StackOverflow2013_zstdlow_4.mdf"))
            .exists(),
        "MOVE decides where each file goes"
    );
}

#[test]
fn the_articles_typographic_quotes_are_named_with_their_place() {
    let Some(text) = article(ZSTD) else { return };
    let place = Place::new();
    let statement = between(&text, "BACKUP DATABASE ourcooldatabasenamehere", "\u{a0} ");
    let run = place.sql(&format!("PRINT 'first'\nGO\n{statement}"));
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("typographic quotation mark"),
        "{}",
        run.err
    );
    assert!(
        run.err.contains("U+2019") && run.err.contains("at line 5,"),
        "{}",
        run.err
    );
}

#[test]
fn the_qat_article_runs_from_configuration_to_comparison() {
    let Some(text) = article(QAT) else { return };
    let place = Place::new();
    make_database(&place.path("so.db"), 3000);
    std::fs::create_dir(place.path("luca")).expect("a folder");
    let instance = place.text("instance");
    let configure = between(&text, "EXEC sp_configure", "Finally restart");
    let configured = place.sql_with(
        &["--instance", &instance, "-b"],
        &format!(
            "{configure}\nGO\nEXEC sp_attach_db 'SBODemoUS', '{}'",
            place.text("so.db")
        ),
    );
    assert_eq!(configured.code, Some(0), "{}", configured.err);
    assert_eq!(configured.err.matches("Run the RECONFIGURE").count(), 2);
    // "Finally restart SQL Server": the next program that opens the instance.
    let backups = between(&text, "BACKUP DATABASE [SBODemoUS]", "The results are:");
    std::fs::write(place.path("article.sql"), backups).expect("the script");
    let drive = format!("c={}", place.text(""));
    let run = place.succeed(&[
        "sql",
        "-b",
        "-i",
        "article.sql",
        "--instance",
        &instance,
        "--drive",
        &drive,
    ]);
    assert_eq!(run.err.matches("successfully processed").count(), 2);
    let comparison = place.sql_with(
        &["--json", "--instance", &instance],
        "SELECT value_in_use FROM sys.configurations WHERE name = 'hardware offload enabled'\n\
         SELECT s.compression_algorithm AS algorithm, COUNT(f.family_sequence_number) AS stripes,\n\
             AVG(DATEDIFF(second, s.backup_start_date, s.backup_finish_date)) AS seconds,\n\
             s.backup_size / s.compressed_backup_size AS ratio\n\
         FROM msdb.dbo.backupset AS s\n\
         JOIN msdb.dbo.backupmediafamily AS f ON f.media_set_id = s.media_set_id\n\
         GROUP BY s.backup_set_id, s.compression_algorithm, s.backup_size, s.compressed_backup_size ORDER BY s.backup_set_id",
    );
    assert_eq!(comparison.code, Some(0), "{}", comparison.err);
    let results = comparison.results();
    assert_eq!(results[0][0]["value_in_use"], 1);
    let rows = results[1].as_array().expect("rows");
    let reported: Vec<_> = rows
        .iter()
        .map(|row| (row["algorithm"].as_str(), row["stripes"].as_i64()))
        .collect();
    assert_eq!(
        reported,
        [(Some("MS_XPRESS"), Some(4)), (Some("QAT_DEFLATE"), Some(4))]
    );
}

#[test]
fn the_striped_backups_of_the_qat_article_run() {
    let Some(text) = article(QAT) else { return };
    let place = Place::new();
    std::fs::create_dir(place.path("luca")).expect("a folder");
    let script = between(&text, "BACKUP DATABASE [SBODemoUS]", "The results are:");
    std::fs::write(place.path("article.sql"), script).expect("the script");
    let run = place.succeed(&[
        "sql",
        "-i",
        "article.sql",
        "--attach",
        "SBODemoUS=app.db",
        "--drive",
        &format!("c={}", place.text("")),
    ]);
    assert_eq!(
        run.err
            .matches("BACKUP DATABASE successfully processed")
            .count(),
        2
    );
    let stripe = |name: &str| place.text(&format!("luca/{name}.bak"));
    let stripes = [
        "SBODemoUS31c",
        "SBODemoUS31",
        "SBODemoUS31b",
        "SBODemoUS31a",
    ]
    .map(stripe);
    let [a, b, c, d] = stripes.each_ref().map(String::as_str);
    place.succeed(&["restore", a, b, c, d, "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 400);
}
