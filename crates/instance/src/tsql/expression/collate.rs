//! COLLATE: which texts are equal.

/// How texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Collation {
    /// `SQL_Latin1_General_CP1_CI_AS`
    #[default]
    Default,
    /// Every other character differs.
    Exact,
}

impl Collation {
    /// The collation of that name; `None` if there is none.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        let words: Vec<&str> = upper.split('_').collect();
        let has = |word: &str| words.contains(&word);
        match upper.as_str() {
            "DATABASE_DEFAULT" | "CATALOG_DEFAULT" | "NOCASE" => Some(Self::Default),
            _ if has("BINARY") || has("BIN") || has("BIN2") || has("CS") => Some(Self::Exact),
            _ if has("CI") && has("AS") => Some(Self::Default),
            _ => None,
        }
    }

    /// Its name in SQLite.
    pub(crate) fn sqlite(self) -> &'static str {
        match self {
            Self::Default => "windlass_ci",
            Self::Exact => "windlass_bin",
        }
    }

    /// That of two operands: an explicit one wins.
    pub(crate) fn of_both(left: Self, right: Self) -> Self {
        match (left, right) {
            (Self::Default, Self::Default) => Self::Default,
            _ => Self::Exact,
        }
    }
}
