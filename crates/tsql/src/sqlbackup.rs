//! The commands of SQL Backup Pro: the argument of `sqlbackup '-SQL "..."'`.
//!
//! ```text
//! BACKUP DATABASE name | [name]         TO DISK = 'f' [, [DISK =] 'g']... [WITH option, ...]
//! BACKUP DATABASES [a, b] | [*] [EXCEPT [c, d]] TO ...
//! RESTORE DATABASE name FROM DISK = 'f' [, ...] [SOURCE = 'name'] [LATEST_FULL | LATEST_DIFF | LATEST_ALL]
//!                       [WITH option, ...]
//! RESTORE VERIFYONLY | HEADERONLY | SQBHEADERONLY | FILELISTONLY FROM DISK = 'f' [, ...] [WITH option, ...]
//! option: word [= value] | MOVE 'a' TO 'b' | MOVE DATAFILES TO 'b'
//! value : 'x' | "x" | [x] | 12 | 5h | word
//! ```
//!
//! Brackets can replace quotes, so that nothing must be doubled inside a procedure's argument. The
//! instance decides which options exist and what they mean.
//!
//! Invariant: one pass over the tokens, no recursion; every text produces a command or an error.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::similar::did_you_mean;

use crate::ParseError;
use crate::lexer::{TokenKind, tokenize, unquoted};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub verb: Verb,
    /// The files, in source form.
    pub disks: Vec<String>,
    /// `SOURCE = 'name'`
    pub source: Option<String>,
    /// `LATEST_FULL` and the like, in capitals.
    pub latest: Option<String>,
    /// The options in source order.
    pub options: Vec<Setting>,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// `BACKUP DATABASE`
    Backup(Databases),
    /// `BACKUP LOG`
    BackupLog,
    /// `RESTORE DATABASE`
    Restore(String),
    /// `RESTORE LOG`
    RestoreLog,
    /// `RESTORE VERIFYONLY`
    VerifyOnly,
    /// `RESTORE HEADERONLY`, `SQBHEADERONLY`
    HeaderOnly,
    /// `RESTORE FILELISTONLY`
    FileListOnly,
}

/// The databases to back up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Databases {
    Named(Vec<String>),
    /// `[*]`: all except the listed ones.
    All {
        /// `EXCEPT [a, b]`
        except: Vec<String>,
    },
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name in capitals.
    pub name: String,
    /// Its value; for MOVE, the logical name, or `DATAFILES` without quotes.
    pub value: Option<String>,
    /// What follows `TO` in MOVE.
    pub target: Option<String>,
}

/// The argument of the procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub command: String,
    /// `--make-folders`
    pub makes_folders: bool,
    /// `--trust-headers`
    pub trusts_headers: bool,
}

/// Reads a procedure's argument: `-SQL "..."`, and options of `windlass sqlbackup` behind it.
///
/// # Errors
/// A description of the invalid argument.
pub fn call_of(argument: &str) -> Result<Call, String> {
    let text = argument.trim();
    let rest = text
        .get(..4)
        .filter(|flag| flag.eq_ignore_ascii_case("-SQL"))
        .map(|_| text[4..].trim());
    let Some(rest) = rest else {
        let shown: String = text.chars().take(20).collect();
        return Err(format!(
            "the argument must be -SQL \"command\", not '{shown}'"
        ));
    };
    let quoted = rest.strip_prefix('"');
    let Some((inner, options)) = quoted.and_then(|rest| rest.rsplit_once('"')) else {
        return Err("the command after -SQL must be in double quotes".to_owned());
    };
    let mut call = Call {
        command: inner.replace("\"\"", "\""),
        makes_folders: false,
        trusts_headers: false,
    };
    for option in options.split_whitespace() {
        match option {
            "--make-folders" => call.makes_folders = true,
            "--trust-headers" => call.trusts_headers = true,
            // Not shown: it may be a part of the command, with a password.
            _ => {
                return Err(
                    "only --make-folders and --trust-headers can follow the quotes of the command"
                        .to_owned(),
                );
            }
        }
    }
    Ok(call)
}

/// Parses a command.
///
/// # Errors
/// [`ParseError`] 102 at the invalid text.
pub fn parse(text: &str) -> Result<Command, ParseError> {
    let mut reader = Reader {
        items: items(text)?,
        at: 0,
    };
    reader.command()
}

/// A token without its position.
#[derive(Debug, Clone)]
struct Item {
    /// Its content: without quotes, if it had any.
    text: String,
    kind: ItemKind,
    /// It may be a password.
    is_secret: bool,
    error: ParseError,
}

/// The words that stand where only they can.
const WORDS: &[&str] = &[
    "BACKUP",
    "DATABASE",
    "DATABASES",
    "DISK",
    "EXCEPT",
    "FILELISTONLY",
    "FROM",
    "HEADERONLY",
    "RESTORE",
    "SOURCE",
    "VERIFYONLY",
    "WITH",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Word,
    /// In quotes or brackets.
    Quoted,
    Number,
    Symbol,
}

fn items(text: &str) -> Result<Vec<Item>, ParseError> {
    let tokens = tokenize(text).map_err(|error| untold(error, text))?;
    // Index of the last word PASSWORD: what follows is not shown.
    let mut secret: Option<usize> = None;
    Ok(tokens
        .iter()
        .enumerate()
        .map(|(at, token)| {
            let written = token.span.text(text);
            if token.kind == TokenKind::Word
                && ["PASSWORD", "PASSWORDFILE"]
                    .iter()
                    .any(|word| written.eq_ignore_ascii_case(word))
            {
                secret = Some(at);
            }
            let is_secret = secret.is_some_and(|before| (1..=3).contains(&(at - before)));
            let shown: String = if is_secret && written.len() > 1 {
                "...".to_owned()
            } else {
                written.chars().take(128).collect()
            };
            let error = ParseError::new(token.span, table::syntax_near(shown));
            let (text, kind) = match token.kind {
                TokenKind::Word => (written.to_owned(), ItemKind::Word),
                TokenKind::BracketedIdentifier
                | TokenKind::QuotedIdentifier
                | TokenKind::Text { .. } => (unquoted(token, text), ItemKind::Quoted),
                TokenKind::Integer => (written.to_owned(), ItemKind::Number),
                _ => (written.to_owned(), ItemKind::Symbol),
            };
            Item {
                text,
                kind,
                is_secret,
                error,
            }
        })
        .collect())
}

/// An error of the lexer, without the offending text if that may be a password.
fn untold(mut error: ParseError, text: &str) -> ParseError {
    if text.to_ascii_uppercase().contains("PASSWORD") {
        "A string is not terminated, or a character is invalid. The text is not shown, because it \
         may contain a password."
            .clone_into(&mut error.text);
    }
    error
}

struct Reader {
    items: Vec<Item>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Item> {
        self.items.get(self.at)
    }

    fn is(&self, word: &str) -> bool {
        self.peek().is_some_and(|item| {
            item.kind != ItemKind::Quoted && item.text.eq_ignore_ascii_case(word)
        })
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), ParseError> {
        if self.accept(word) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// The error at the next item, or at the last one.
    fn unexpected(&self) -> ParseError {
        let item = self.peek().or(self.items.last());
        item.map_or_else(
            || {
                let message = Message {
                    text: "The command is empty.".to_owned(),
                    ..table::syntax_near("")
                };
                ParseError::new(crate::Span::default(), message)
            },
            |item| {
                let known = WORDS.iter().copied();
                let meant = did_you_mean(&item.text, known);
                match meant.filter(|_| item.kind == ItemKind::Word && !item.is_secret) {
                    Some(meant) => item.error.clone().with_hint(meant),
                    None => item.error.clone(),
                }
            },
        )
    }

    fn take(&mut self, kinds: &[ItemKind]) -> Result<String, ParseError> {
        match self.peek() {
            Some(item) if kinds.contains(&item.kind) => {
                let text = item.text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        let verb = if self.accept("BACKUP") {
            self.backup()?
        } else {
            self.expect("RESTORE")?;
            self.restore()?
        };
        let is_backup = matches!(verb, Verb::Backup(_) | Verb::BackupLog);
        self.expect(if is_backup { "TO" } else { "FROM" })?;
        let disks = self.disks()?;
        let mut command = Command {
            verb,
            disks,
            source: None,
            latest: None,
            options: Vec::new(),
        };
        if self.accept("SOURCE") {
            self.expect("=")?;
            command.source = Some(self.take(&[ItemKind::Quoted, ItemKind::Word])?);
        }
        for latest in ["LATEST_FULL", "LATEST_DIFF", "LATEST_ALL"] {
            if self.accept(latest) {
                command.latest = Some(latest.to_owned());
            }
        }
        if self.accept("WITH") {
            loop {
                command.options.push(self.setting()?);
                if !self.accept(",") {
                    break;
                }
            }
        }
        self.accept(";");
        if self.peek().is_some() {
            return Err(self.unexpected());
        }
        Ok(command)
    }

    fn backup(&mut self) -> Result<Verb, ParseError> {
        if self.accept("LOG") || self.accept("LOGS") {
            self.take(&[ItemKind::Quoted, ItemKind::Word])?;
            return Ok(Verb::BackupLog);
        }
        if self.accept("DATABASE") {
            let name = self.take(&[ItemKind::Quoted, ItemKind::Word])?;
            return Ok(Verb::Backup(Databases::Named(vec![name])));
        }
        self.expect("DATABASES")?;
        let listed = self.list()?;
        if listed == ["*"] {
            let except = if self.accept("EXCEPT") {
                self.list()?
            } else {
                Vec::new()
            };
            return Ok(Verb::Backup(Databases::All { except }));
        }
        Ok(Verb::Backup(Databases::Named(listed)))
    }

    /// `[a, b]`
    fn list(&mut self) -> Result<Vec<String>, ParseError> {
        let written = self.take(&[ItemKind::Quoted])?;
        let names = written.split(',').map(str::trim);
        Ok(names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect())
    }

    fn restore(&mut self) -> Result<Verb, ParseError> {
        if self.accept("DATABASE") {
            let name = self.take(&[ItemKind::Quoted, ItemKind::Word])?;
            return Ok(Verb::Restore(name));
        }
        if self.accept("LOG") {
            self.take(&[ItemKind::Quoted, ItemKind::Word])?;
            return Ok(Verb::RestoreLog);
        }
        for (word, verb) in [
            ("VERIFYONLY", Verb::VerifyOnly),
            ("HEADERONLY", Verb::HeaderOnly),
            ("SQBHEADERONLY", Verb::HeaderOnly),
            ("FILELISTONLY", Verb::FileListOnly),
        ] {
            if self.accept(word) {
                return Ok(verb);
            }
        }
        Err(self.unexpected())
    }

    fn disks(&mut self) -> Result<Vec<String>, ParseError> {
        self.expect("DISK")?;
        self.expect("=")?;
        let mut disks = vec![self.take(&[ItemKind::Quoted])?];
        while self.accept(",") {
            if self.accept("DISK") {
                self.expect("=")?;
            }
            disks.push(self.take(&[ItemKind::Quoted])?);
        }
        Ok(disks)
    }

    fn setting(&mut self) -> Result<Setting, ParseError> {
        let name = self.take(&[ItemKind::Word])?.to_ascii_uppercase();
        if name == "MOVE" {
            let value = self.take(&[ItemKind::Quoted, ItemKind::Word])?;
            self.expect("TO")?;
            let target = self.take(&[ItemKind::Quoted])?;
            return Ok(Setting {
                name,
                value: Some(value),
                target: Some(target),
            });
        }
        let mut value = None;
        if self.accept("=") {
            let sign = if self.accept("-") { "-" } else { "" };
            let kinds = [ItemKind::Quoted, ItemKind::Number, ItemKind::Word];
            let is_number = self
                .peek()
                .is_some_and(|item| item.kind == ItemKind::Number);
            let mut text = format!("{sign}{}", self.take(&kinds)?);
            // `5h` is lexed as a number and a word.
            if is_number
                && let Some(unit) = self.peek()
                && unit.kind == ItemKind::Word
                && matches!(unit.text.to_ascii_lowercase().as_str(), "h" | "b")
            {
                text.push_str(&unit.text);
                self.at += 1;
            }
            value = Some(text);
        }
        Ok(Setting {
            name,
            value,
            target: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(command: &Command, name: &str) -> Option<String> {
        let found = command.options.iter().find(|option| option.name == name);
        found.and_then(|option| option.value.clone())
    }

    #[test]
    fn commands_of_real_jobs_are_read() {
        let text = call_of(
            "-SQL \"BACKUP DATABASES [*] EXCEPT [tempdb, model] TO DISK = [\\\\share\\<SERVER>\\<AUTO>.sqb] WITH \
             COMPRESSION = 2, THREADCOUNT = 3, ERASEFILES = 5h, COPYTO = [/c], VERIFY, NAME = 'it''s', \
             DISKRETRYCOUNT = 10\"",
        )
        .unwrap()
        .command;
        let command = parse(&text).unwrap();
        assert_eq!(
            command.verb,
            Verb::Backup(Databases::All {
                except: vec!["tempdb".to_owned(), "model".to_owned()]
            })
        );
        assert_eq!(command.disks, ["\\\\share\\<SERVER>\\<AUTO>.sqb"]);
        assert_eq!(named(&command, "ERASEFILES").as_deref(), Some("5h"));
        assert_eq!(named(&command, "NAME").as_deref(), Some("it's"));
        assert_eq!(command.options.len(), 7);
    }

    #[test]
    fn several_databases_and_stripes() {
        let command =
            parse("backup databases [a, b ,c] to disk = 'x', 'y', disk = [z] with init").unwrap();
        assert_eq!(
            command.verb,
            Verb::Backup(Databases::Named(vec![
                "a".to_owned(),
                "b".to_owned(),
                "c".to_owned()
            ]))
        );
        assert_eq!(command.disks, ["x", "y", "z"]);
    }

    #[test]
    fn restores_of_the_latest() {
        let command = parse(
            "RESTORE DATABASE [copy] FROM DISK = '/b/*.sqb' SOURCE = 'app' LATEST_ALL \
             WITH MOVE 'app' TO '/r/copy.db', MOVE DATAFILES TO [/r], REPLACE, CHECKDB, DROPDB;",
        )
        .unwrap();
        assert_eq!(command.verb, Verb::Restore("copy".to_owned()));
        assert_eq!(command.latest.as_deref(), Some("LATEST_ALL"));
        assert_eq!(command.options[0].target.as_deref(), Some("/r/copy.db"));
    }

    #[test]
    fn no_error_repeats_a_password() {
        for text in [
            "BACKUP DATABASE x TO DISK = 'x' WITH PASSWORD 'hunter2'",
            "BACKUP DATABASE x TO DISK = 'x' WITH PASSWORD = hunter1 hunter2",
            "BACKUP DATABASE x TO DISK = 'x' WITH password = , 'hunter2'",
            "BACKUP DATABASE x TO DISK = 'x' WITH PASSWORD ( 'hunter2')",
            "BACKUP DATABASE x TO DISK = 'x' WITH PASSWORD = 'hunter2",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.text.contains("hunter"), "{}", error.text);
        }
    }

    #[test]
    fn what_is_no_command_is_refused_with_its_place() {
        for text in [
            "",
            "DROP DATABASE x",
            "BACKUP DATABASE x",
            "BACKUP DATABASE x TO DISK = x.bak",
            "BACKUP DATABASE x TO DISK = 'x' WITH",
            "BACKUP DATABASE x TO DISK = 'x' WITH A = ,",
            "BACKUP DATABASE x TO DISK = 'x' nonsense",
            "RESTORE x",
        ] {
            assert_eq!(parse(text).unwrap_err().number, 102, "{text}");
        }
        for text in [
            "BACKUP DATABASE x",
            "-SQL BACKUP",
            "-SQL \"",
            "-S\u{e4}\u{e4}",
            "-SQL \"x\" --make-folder",
            "-SQL \"x\"secret",
        ] {
            let refused = call_of(text).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn options_follow_the_command() {
        let read = |text: &str| {
            let call = call_of(text).unwrap();
            (call.command, call.makes_folders, call.trusts_headers)
        };
        assert_eq!(
            read("-sql \"a \"\"--make-folders\"\" b\""),
            ("a \"--make-folders\" b".to_owned(), false, false)
        );
        assert_eq!(
            read("-SQL \"a\" --make-folders"),
            ("a".to_owned(), true, false)
        );
        assert_eq!(
            read(" -SQL \"a\" --trust-headers --make-folders "),
            ("a".to_owned(), true, true)
        );
    }
}
