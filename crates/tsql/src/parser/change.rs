//! Statements that change rows and tables.
//!
//! What only `SQLite` has (`ON CONFLICT`, `CREATE TABLE ... AS`) is not read here: such a statement is
//! run as written.

use super::cursor::Parser;
use crate::ast::{
    Change, ColumnDefinition, CommonTable, CreateTable, Delete, Insert, InsertRows, Sql, SqlTree,
    Statement, Target, Update,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::Spanned;

impl Parser<'_> {
    /// A statement that `SQLite` runs.
    pub(super) fn sql(&mut self) -> Result<Statement, ParseError> {
        let start = self.place();
        let first = self.text_at(0).to_ascii_uppercase();
        let tree = match first.as_str() {
            "SELECT" | "WITH" | "VALUES" => self.query_or_change()?,
            "INSERT" | "UPDATE" | "DELETE" => self.change(Vec::new())?,
            "MERGE" => {
                let hint = "Write UPDATE and INSERT, or SQLite's INSERT ... ON CONFLICT.";
                return Err(self.not_supported("MERGE", hint));
            }
            "TRUNCATE" => {
                self.expect_words(&["TRUNCATE", "TABLE"])?;
                Some(SqlTree::Truncate(self.spanned_name()?))
            }
            "DROP" if self.is_word_at(1, "TABLE") => Some(self.drop_table()?),
            "CREATE" if self.is_word_at(1, "TABLE") => self.create_table(),
            _ => None,
        };
        let tree = match tree {
            Some(tree) => tree,
            None => {
                self.return_to(start);
                self.refuse_programs()?;
                self.words_to_end()?;
                SqlTree::Native
            }
        };
        let text = self.text_since(start).to_owned();
        Ok(Statement::Sql(Sql { text, tree }))
    }

    /// Procedures and functions are no SQL of SQLite's.
    fn refuse_programs(&self) -> Result<(), ParseError> {
        if !(self.is_word("CREATE") || self.is_word("ALTER") || self.is_word("DROP")) {
            return Ok(());
        }
        let object = match self.is_word_at(1, "OR") {
            true => self.text_at(3),
            false => self.text_at(1),
        };
        let object = object.to_ascii_uppercase();
        let what = format!("{} {object}", self.text_at(0)).to_ascii_uppercase();
        match object.as_str() {
            "FUNCTION" => Err(self.not_supported(&what, "Write a procedure with an OUTPUT parameter instead.")),
            "USER" | "ROLE" | "SCHEMA" => Err(self.not_supported(
                &what,
                "There are logins and server roles (CREATE LOGIN, ALTER SERVER ROLE r ADD MEMBER login), and nothing \
                 of the kind in a database.",
            )),
            _ => Ok(()),
        }
    }

    fn query_or_change(&mut self) -> Result<Option<SqlTree>, ParseError> {
        self.queries += 1;
        let tables = self.common_tables()?;
        let changes = ["INSERT", "UPDATE", "DELETE", "REPLACE"];
        if changes.iter().any(|word| self.is_word(word)) {
            self.queries -= 1;
            return self.change(tables);
        }
        let query = self.nested(|parser| parser.query_after(tables))?;
        self.queries -= 1;
        Ok(Some(SqlTree::Query(Box::new(query))))
    }

    /// INSERT, UPDATE or DELETE; `None` if it is in SQLite's own words.
    fn change(&mut self, tables: Vec<CommonTable>) -> Result<Option<SqlTree>, ParseError> {
        if self.is_word_at(1, "OR") || self.is_word("REPLACE") {
            return Ok(None);
        }
        self.queries += 1;
        let tree = match self.text_at(0).to_ascii_uppercase().as_str() {
            "INSERT" => self.insert(tables)?,
            "UPDATE" => self.update(tables)?,
            _ => self.delete(tables)?,
        };
        self.queries -= 1;
        let is_native = self.is_word("RETURNING")
            || self.is_word("ON") && self.is_word_at(1, "CONFLICT")
            || self.is_word("LIMIT");
        Ok((!is_native).then_some(tree))
    }

    fn target(&mut self) -> Result<Spanned<Target>, ParseError> {
        if self.is_word("TOP") {
            let hint = "Choose the rows with WHERE ... IN (SELECT TOP ...).";
            return Err(self.not_supported("TOP in a change", hint));
        }
        let target = self.spanned(|parser| match parser.kind() {
            Some(TokenKind::Variable) => parser.variable().map(Target::Variable),
            _ => parser.object_name().map(Target::Table),
        })?;
        self.table_hints()?;
        Ok(target)
    }

    fn refuse_output(&self) -> Result<(), ParseError> {
        match self.is_word("OUTPUT") {
            true => Err(self.not_supported("OUTPUT", "Write SQLite's RETURNING instead.")),
            false => Ok(()),
        }
    }

    fn insert(&mut self, tables: Vec<CommonTable>) -> Result<SqlTree, ParseError> {
        self.expect_word("INSERT")?;
        self.accept_word("INTO");
        let target = self.target()?;
        let mut columns = Vec::new();
        let is_list =
            self.is_symbol("(") && !self.is_word_at(1, "SELECT") && !self.is_word_at(1, "WITH");
        if is_list {
            self.bump();
            columns = self.comma_list(|parser| parser.spanned(Self::identifier))?;
            self.expect_symbol(")")?;
        }
        self.refuse_output()?;
        let rows = if self.is_word("EXEC") || self.is_word("EXECUTE") {
            InsertRows::Execute(Box::new(self.execute()?))
        } else if self.is_word("DEFAULT") {
            self.expect_words(&["DEFAULT", "VALUES"])?;
            InsertRows::DefaultValues
        } else {
            InsertRows::Query(Box::new(self.query()?))
        };
        Ok(SqlTree::Insert(Box::new(Insert {
            tables,
            target,
            columns,
            rows,
        })))
    }

    fn update(&mut self, tables: Vec<CommonTable>) -> Result<SqlTree, ParseError> {
        self.expect_word("UPDATE")?;
        let target = self.target()?;
        self.expect_word("SET")?;
        let changes = self.comma_list(|parser| {
            let column = parser.spanned(|parser| parser.object_name().map(|name| name.object))?;
            let operator = parser.assignment()?;
            let value = parser.expression()?;
            Ok(Change {
                column,
                operator,
                value,
            })
        })?;
        self.refuse_output()?;
        let from = self.from()?;
        let condition = self.where_condition()?;
        Ok(SqlTree::Update(Box::new(Update {
            tables,
            target,
            changes,
            from,
            condition,
        })))
    }

    fn delete(&mut self, tables: Vec<CommonTable>) -> Result<SqlTree, ParseError> {
        self.expect_word("DELETE")?;
        self.accept_word("FROM");
        let target = self.target()?;
        self.refuse_output()?;
        let from = self.from()?;
        let condition = self.where_condition()?;
        Ok(SqlTree::Delete(Box::new(Delete {
            tables,
            target,
            from,
            condition,
        })))
    }

    fn drop_table(&mut self) -> Result<SqlTree, ParseError> {
        self.expect_words(&["DROP", "TABLE"])?;
        let if_exists = self.is_word("IF");
        if if_exists {
            self.expect_words(&["IF", "EXISTS"])?;
        }
        let names = self.comma_list(Self::spanned_name)?;
        Ok(SqlTree::DropTable { names, if_exists })
    }

    /// `None` if the table is described in SQLite's own words.
    fn create_table(&mut self) -> Option<SqlTree> {
        self.expect_words(&["CREATE", "TABLE"]).ok()?;
        let target = self
            .spanned(|parser| parser.object_name().map(Target::Table))
            .ok()?;
        let table = self.table_definition(target).ok()?;
        Some(SqlTree::CreateTable(Box::new(table)))
    }

    /// `(columns)` and what follows it.
    pub(super) fn table_definition(
        &mut self,
        target: Spanned<Target>,
    ) -> Result<CreateTable, ParseError> {
        self.expect_symbol("(")?;
        let mut columns = Vec::new();
        let mut constraints = Vec::new();
        loop {
            const TABLE_WORDS: &[&str] = &["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
            if TABLE_WORDS.iter().any(|word| self.is_word(word)) {
                constraints.push(self.constraint_text()?);
            } else {
                columns.push(self.spanned(Self::column_definition)?);
            }
            if !self.accept_symbol(",") {
                break;
            }
        }
        self.expect_symbol(")")?;
        let mut options = Vec::new();
        if self.is_word("WITHOUT") && self.is_word_at(1, "ROWID") {
            self.bump();
            self.bump();
            options.push("WITHOUT ROWID");
        }
        if self.is_word("STRICT") {
            self.bump();
            options.push("STRICT");
        }
        Ok(CreateTable {
            target,
            columns,
            constraints,
            options: options.join(", "),
        })
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition, ParseError> {
        let name = self.identifier()?;
        let typed = !self.is_symbol(",") && !self.is_symbol(")") && self.is_at_identifier();
        let data_type = match typed {
            true => Some(self.data_type()?),
            false => None,
        };
        let mut column = ColumnDefinition {
            name,
            data_type,
            is_identity: false,
            is_primary: false,
            is_required: false,
            default: None,
            constraints: Vec::new(),
        };
        while !self.is_symbol(",") && !self.is_symbol(")") {
            self.column_constraint(&mut column)?;
        }
        Ok(column)
    }

    fn column_constraint(&mut self, column: &mut ColumnDefinition) -> Result<(), ParseError> {
        if self.accept_word("NULL") {
        } else if self.is_word("NOT") && self.is_word_at(1, "NULL") {
            self.expect_words(&["NOT", "NULL"])?;
            column.is_required = true;
        } else if self.accept_word("IDENTITY") {
            if self.accept_symbol("(") {
                self.skip_to_closing_parenthesis()?;
                self.expect_symbol(")")?;
            }
            column.is_identity = true;
        } else if self.is_word("PRIMARY") {
            self.expect_words(&["PRIMARY", "KEY"])?;
            column.is_primary = true;
            self.accept_word("CLUSTERED");
            self.accept_word("NONCLUSTERED");
            column.is_identity |= self.accept_word("AUTOINCREMENT");
        } else if self.accept_word("DEFAULT") {
            column.default = Some(self.expression()?);
        } else if self.is_word("CONSTRAINT") {
            // Its name means nothing to SQLite here.
            self.bump();
            self.identifier()?;
        } else {
            column.constraints.push(self.constraint_text()?);
        }
        Ok(())
    }

    /// A constraint up to the next comma or parenthesis, verbatim.
    fn constraint_text(&mut self) -> Result<String, ParseError> {
        let start = self.place();
        while !self.is_symbol(",") && !self.is_symbol(")") {
            if self.is_at_end() || self.is_symbol(";") {
                return Err(self.unexpected());
            }
            if self.accept_symbol("(") {
                self.skip_to_closing_parenthesis()?;
                self.expect_symbol(")")?;
            } else {
                self.bump();
            }
        }
        Ok(self.text_since(start).to_owned())
    }
}
