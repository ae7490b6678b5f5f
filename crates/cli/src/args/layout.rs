//! How results are laid out.

use clap::{Args, ValueEnum};

use crate::output::{Layout, terminal_width};

/// How a result set is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table if it fits the terminal, else one line per column
    Auto,
    /// A table, however wide
    Wide,
    /// One line per column
    Vertical,
}

/// The layout of result sets; `--json` overrides it.
#[derive(Debug, Args)]
pub(crate) struct LayoutArguments {
    /// Layout of results; auto: a table if it fits the terminal, else one line per column
    #[arg(short = 'o', long, value_name = "LAYOUT")]
    output: Option<Output>,
    /// Columns to print, in this order: --columns Position,DatabaseName
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

impl LayoutArguments {
    /// The layout; `usual` if none was asked for.
    pub(crate) fn layout(&self, usual: Output) -> Layout {
        match self.output.unwrap_or(usual) {
            Output::Wide => Layout::Table,
            Output::Vertical => Layout::Vertical,
            Output::Auto => terminal_width().map_or(Layout::Table, Layout::Fitting),
        }
    }
}
