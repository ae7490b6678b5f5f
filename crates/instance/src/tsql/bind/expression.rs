//! Values: constants, columns, operators, functions.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Case, Expr, ObjectName, OnConversionFailure, Subquery, UnaryOperator};
use windlass_tsql::span::Spanned;

use super::operator::{
    collation_of, collation_of_all, common, comparable, comparable_types, date_part, infix,
    wrong_count,
};
use super::table::own_view;
use super::{Binder, is_same};
use crate::data_type::CONVERSION_LENGTH;
use crate::tsql::expression::{Bound, Collation, Node, function_type, number_constant};
use crate::tsql::procedure::stored;
use crate::{DataType, Environment as _, Failure, Value};

type Result<T> = std::result::Result<T, Failure>;

/// Functions whose values depend on the lists of databases and logins.
const ASKING: [&str; 9] = [
    "DATABASEPROPERTYEX",
    "DB_ID",
    "DB_NAME",
    "HAS_DBACCESS",
    "IS_SRVROLEMEMBER",
    "SUSER_ID",
    "SUSER_NAME",
    "SUSER_SID",
    "SUSER_SNAME",
];

impl Binder<'_> {
    pub(super) fn expressions(&mut self, expressions: &[Spanned<Expr>]) -> Result<Vec<Bound>> {
        let each = expressions.iter();
        each.map(|expression| self.expression(&expression.node))
            .collect()
    }

    pub(super) fn expression(&mut self, expression: &Expr) -> Result<Bound> {
        match expression {
            Expr::Null => Ok(Bound::value(Value::Null, DataType::Null)),
            Expr::Text { text, national } => {
                let ty = DataType::text(text.encode_utf16().count(), *national);
                Ok(Bound::value(Value::text(text), ty))
            }
            Expr::Integer(number) => Ok(match i32::try_from(*number) {
                Ok(_) => Bound::value(Value::Integer(*number), DataType::INT),
                // Constants beyond int are numeric.
                Err(_) => {
                    let (value, ty) = number_constant(&number.to_string())?;
                    Bound::value(value, ty)
                }
            }),
            Expr::Decimal(written) => {
                let (value, ty) = number_constant(written)?;
                Ok(Bound::value(value, ty))
            }
            Expr::Binary(bytes) => Ok(Bound::value(
                Value::Binary(bytes.clone()),
                DataType::Binary {
                    limit: Some(bytes.len()),
                    padded: false,
                },
            )),
            Expr::Variable(variable) => self.variable(&variable.name),
            Expr::Unary { operator, operand } => self.unary(*operator, operand),
            Expr::Infix { .. } => self.chain(expression),
            Expr::Call {
                function,
                arguments,
            } => self.call(function, arguments),
            Expr::Cast {
                value,
                data_type,
                on_failure,
            } => {
                let value = self.expression(&value.node)?;
                Self::conversion(value, data_type, None, *on_failure)
            }
            Expr::Convert {
                data_type,
                value,
                style,
                on_failure,
            } => {
                let value = self.expression(&value.node)?;
                let style = match style {
                    Some(style) => Some(self.expression(&style.node)?),
                    None => None,
                };
                Self::conversion(value, data_type, style, *on_failure)
            }
            Expr::Subquery(query) => self.scalar_subquery(query),
            Expr::Column(name) => self.column(name),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Collate { value, collation } => {
                if Collation::named(&collation.text).is_none() {
                    return Err(messages::collation_invalid(&collation.text).into());
                }
                let value = self.expression(&value.node)?;
                Ok(match value.ty.is_text() || value.ty == DataType::Variant {
                    true => value,
                    false => value.converted(DataType::TEXT),
                })
            }
            Expr::Case(case) => self.case(case),
            condition => self.condition(condition),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Bound> {
        if name.starts_with("@@") {
            let value = self.session.variable(name)?;
            let ty = match &value {
                Value::Text(_) => DataType::TEXT,
                Value::Integer(_) => DataType::INT,
                other => crate::tsql::expression::type_of(other),
            };
            return Ok(Bound::value(value, ty));
        }
        let ty = self.session.variables.data_type(name)?;
        if self.live.contains(&name.to_lowercase()) {
            return Ok(Bound::new(Node::Variable(name.to_owned()), ty));
        }
        let value = self.session.variables.value(name)?;
        let ty = match ty {
            DataType::Variant => crate::tsql::expression::type_of(&value),
            known => known,
        };
        Ok(Bound::value(value, ty))
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Spanned<Expr>) -> Result<Bound> {
        let mut operand = self.expression(&operand.node)?;
        if operand.ty.is_text() && operator != UnaryOperator::Plus {
            operand = operand.converted(DataType::INT);
        }
        let ty = operand.ty;
        let is_known = !matches!(ty, DataType::Null | DataType::Variant);
        match operator {
            UnaryOperator::Plus => Ok(operand),
            UnaryOperator::Negate if is_known && (!ty.is_number() || ty == DataType::Bit) => {
                Err(messages::operand_invalid(ty.name(), "minus").into())
            }
            UnaryOperator::Negate => Ok(Bound::new(Node::Negate(Box::new(operand)), ty)),
            UnaryOperator::BitNot if is_known && !ty.is_whole() => {
                Err(messages::operand_invalid(ty.name(), "'~'").into())
            }
            UnaryOperator::BitNot => Ok(Bound::new(Node::BitNot(Box::new(operand)), ty)),
        }
    }

    /// `a + b + c`: a long chain is a high tree, so its left side is walked in a loop.
    fn chain(&mut self, expression: &Expr) -> Result<Bound> {
        let mut steps = Vec::new();
        let mut first = expression;
        while let Expr::Infix {
            operator,
            left,
            right,
        } = first
        {
            steps.push((*operator, right));
            first = &left.node;
        }
        let mut bound = self.expression(first)?;
        for (operator, right) in steps.into_iter().rev() {
            let right = self.expression(&right.node)?;
            bound = infix(operator, bound, right)?;
        }
        Ok(bound)
    }

    pub(super) fn conversion(
        value: Bound,
        written: &windlass_tsql::ast::DataType,
        style: Option<Bound>,
        on_failure: OnConversionFailure,
    ) -> Result<Bound> {
        let ty = DataType::of(written, CONVERSION_LENGTH)
            .ok_or_else(|| Failure::ending(messages::type_unknown(&written.name.object.text)))?;
        let node = Node::Convert {
            value: Box::new(value),
            style: style.map(Box::new),
            on_failure,
            column: None,
        };
        Ok(Bound::new(node, ty))
    }

    pub(super) fn column(&mut self, name: &ObjectName) -> Result<Bound> {
        let table = name.qualifiers.last().and_then(Option::as_ref);
        for depth in (0..self.scopes.len()).rev() {
            let Some(scope) = self.scopes.get(depth) else {
                continue;
            };
            let mut found = Vec::new();
            for source in &scope.sources {
                if table.is_some_and(|table| !is_same(&table.text, &source.name)) {
                    continue;
                }
                let columns = source.columns.iter();
                let matching = columns.filter(|column| is_same(&column.name, &name.object.text));
                found.extend(matching.cloned());
                let is_rowid = source.is_table && name.object.is("rowid");
                if found.is_empty() && is_rowid {
                    found.push(super::SourceColumn {
                        name: "rowid".to_owned(),
                        ty: DataType::BIGINT,
                        sql: format!("{}.rowid", super::quoted(&source.name)),
                    });
                }
            }
            match found.as_slice() {
                [] => {}
                [column] => return Ok(self.leaf(column.sql.clone(), column.ty)),
                _ => return Err(messages::column_ambiguous(&name.object.text).into()),
            }
        }
        Err(match table {
            Some(_) => messages::multipart_unknown(name).into(),
            None => messages::column_unknown(&name.object.text).into(),
        })
    }

    fn call(&mut self, function: &ObjectName, arguments: &[Spanned<Expr>]) -> Result<Bound> {
        let name = function.object.text.to_ascii_uppercase();
        if super::aggregate::is_aggregate(&name, arguments.len()) {
            return self.plain_aggregate(function, arguments);
        }
        match name.as_str() {
            "ISNULL" => {
                let values = self.counted(&name, arguments, 2, 2)?;
                let ty = match values[0].ty {
                    DataType::Null => values[1].ty,
                    ty => ty,
                };
                let values = values.into_iter().map(|value| value.converted(ty));
                return Ok(Bound::new(Node::First(values.collect()), ty));
            }
            "COALESCE" => {
                let values = self.counted(&name, arguments, 2, 254)?;
                let ty = common(&values);
                let values = values.into_iter().map(|value| value.converted(ty));
                return Ok(Bound::new(Node::First(values.collect()), ty));
            }
            "NULLIF" => {
                let collation = collation_of_all(arguments);
                let mut values = self.counted(&name, arguments, 2, 2)?;
                let ty = values[0].ty;
                let (left, right) = (values.remove(0), values.remove(0));
                let common = comparable(&left, &right);
                let right = right.converted(common);
                // The first keeps its type: only the comparison converts it.
                let node = Node::NullIf(Box::new(left), Box::new(right), collation);
                return Ok(Bound::new(node, ty));
            }
            "OBJECT_ID" => return self.object_id(arguments),
            "OBJECT_DEFINITION" | "OBJECT_NAME" => return self.module(&name, arguments),
            "FILEPROPERTY" => return self.file_property(arguments),
            _ => {}
        }
        let Some(known) = function_type(&name) else {
            return self.sqlite_function(function, arguments);
        };
        if !function.qualifiers.is_empty() {
            return Err(messages::not_recognized(function, "built-in function name").into());
        }
        if ASKING.contains(&name.as_str()) {
            self.asks_databases = true;
        }
        let collation = collation_of_all(arguments);
        let arguments = self.typed_arguments(&name, &known, arguments)?;
        let ty = known.result(&arguments);
        let arguments = match name.as_str() {
            "GREATEST" | "LEAST" => arguments
                .into_iter()
                .map(|value| value.converted(ty))
                .collect(),
            _ => arguments,
        };
        let node = Node::Call {
            function: name,
            arguments,
            collation,
        };
        Ok(Bound::new(node, ty))
    }

    fn typed_arguments(
        &mut self,
        name: &str,
        known: &crate::tsql::expression::FunctionType,
        arguments: &[Spanned<Expr>],
    ) -> Result<Vec<Bound>> {
        if arguments.len() < known.least || arguments.len() > known.most {
            return Err(wrong_count(name, known.least, known.most));
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            if known.letter(index) == 'p' && index == 0 {
                bound.push(date_part(name, argument)?);
                continue;
            }
            let argument = self.expression(&argument.node)?;
            bound.push(known.argument(index, argument));
        }
        Ok(bound)
    }

    fn counted(
        &mut self,
        name: &str,
        arguments: &[Spanned<Expr>],
        least: usize,
        most: usize,
    ) -> Result<Vec<Bound>> {
        if arguments.len() < least || arguments.len() > most {
            return Err(wrong_count(name, least, most));
        }
        self.expressions(arguments)
    }

    fn object_id(&mut self, arguments: &[Spanned<Expr>]) -> Result<Bound> {
        let values = self.counted("OBJECT_ID", arguments, 1, 2)?;
        let Some(Value::Text(name)) = values[0].constant().cloned() else {
            return Err(messages::statement_not_supported(
                "OBJECT_ID of anything but a constant or a variable",
                "Write the name itself.",
            )
            .into());
        };
        let kind = match values.get(1).and_then(Bound::constant) {
            Some(Value::Text(kind)) => kind.trim().to_ascii_uppercase(),
            _ => String::new(),
        };
        let is_any = kind.is_empty();
        let procedure = match is_any || kind == "P" {
            true => stored::object_id(self.session, &name)?,
            false => None,
        };
        let value = match procedure {
            Some(id) => Value::Integer(id),
            None if is_any || kind == "U" || kind == "V" => self
                .object_number(&name)?
                .map_or(Value::Null, Value::Integer),
            None => Value::Null,
        };
        Ok(Bound::value(value, DataType::INT))
    }

    /// The text or the name of a procedure, by its number.
    fn module(&mut self, function: &str, arguments: &[Spanned<Expr>]) -> Result<Bound> {
        let values = self.counted(function, arguments, 1, 1)?;
        let id = values
            .into_iter()
            .next()
            .unwrap_or(Bound::value(Value::Null, DataType::Null))
            .converted(DataType::INT);
        let id = self.emit_stored(&id);
        let objects = own_view("objects").map(|objects| objects.sql);
        let (column, view) = match function {
            "OBJECT_NAME" => ("name", objects.unwrap_or_default()),
            _ => ("definition", "sys.sql_modules".to_owned()),
        };
        let sql = format!("(SELECT m.{column} FROM {view} AS m WHERE m.object_id = {id})");
        Ok(self.leaf(sql, DataType::TEXT))
    }

    /// A property of a file of the current database. Only the database itself knows which pages of its only
    /// file are in use.
    fn file_property(&mut self, arguments: &[Spanned<Expr>]) -> Result<Bound> {
        let values = self.counted("FILEPROPERTY", arguments, 2, 2)?;
        let texts = values
            .into_iter()
            .map(|value| value.converted(DataType::TEXT));
        let [name, property] = texts
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| [(); 2].map(|()| Bound::value(Value::Null, DataType::TEXT)));
        let (name, property) = (self.emit_stored(&name), self.emit_stored(&property));
        let sql = format!(
            "(SELECT CASE lower({property})
                 WHEN 'spaceused' THEN CASE f.type
                     WHEN 1 THEN (SELECT (l.used_log_space_in_bytes + 8191) / 8192 FROM sys.dm_db_log_space_usage AS l)
                     ELSE ifnull((SELECT u.allocated_extent_page_count FROM sys.dm_db_file_space_usage AS u
                                  WHERE u.file_id = f.file_id),
                                 (SELECT ((n.page_count - r.freelist_count) * s.page_size + 8191) / 8192
                                  FROM pragma_page_count AS n, pragma_freelist_count AS r, pragma_page_size AS s))
                     END
                 WHEN 'isreadonly' THEN 0
                 WHEN 'isprimaryfile' THEN f.file_id = 1
                 WHEN 'islogfile' THEN f.type = 1 END
              FROM sys.database_files AS f WHERE f.name = {name} COLLATE NOCASE)"
        );
        Ok(self.leaf(sql, DataType::INT))
    }

    fn case(&mut self, case: &Case) -> Result<Bound> {
        let mut results = Vec::new();
        for branch in &case.branches {
            results.push(self.expression(&branch.then.node)?);
        }
        if let Some(otherwise) = &case.otherwise {
            results.push(self.expression(&otherwise.node)?);
        }
        let ty = common(&results);
        let mut results: Vec<Bound> = results
            .into_iter()
            .map(|value| value.converted(ty))
            .collect();
        let otherwise = match case.otherwise {
            Some(_) => results.pop().map(Box::new),
            None => None,
        };
        let Some(operand) = &case.operand else {
            let mut branches = Vec::new();
            for (branch, then) in case.branches.iter().zip(results) {
                branches.push((self.condition(&branch.when.node)?, then));
            }
            return Ok(Bound::new(
                Node::Case {
                    branches,
                    otherwise,
                },
                ty,
            ));
        };
        let collation = collation_of(&operand.node);
        let operand = self.expression(&operand.node)?;
        let mut whens = Vec::new();
        for branch in &case.branches {
            whens.push(self.expression(&branch.when.node)?);
        }
        let compared = whens
            .iter()
            .fold(operand.ty, |ty, when| comparable_types(ty, when.ty));
        let branches = whens.into_iter().map(|when| when.converted(compared));
        let branches = branches.zip(results).collect();
        Ok(Bound::new(
            Node::Choose {
                operand: Box::new(operand.converted(compared)),
                branches,
                otherwise,
                collation,
            },
            ty,
        ))
    }

    fn scalar_subquery(&mut self, subquery: &Subquery) -> Result<Bound> {
        let (sql, ty) = self.single_column(&subquery.query)?;
        Ok(self.leaf(sql, ty))
    }
}
