//! Commands that show what is on media.

use clap::Args;
use windlass_base::range;

use super::LayoutArguments;
use super::number::number;

/// `windlass header`
#[derive(Debug, Args)]
pub(crate) struct HeaderArguments {
    /// Backup files; one stripe is enough
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Position of the only backup set to show
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// As -o wide
    #[arg(long, conflicts_with = "output")]
    pub(crate) table: bool,
    #[command(flatten)]
    pub(crate) layout: LayoutArguments,
}

/// `windlass files`
#[derive(Debug, Args)]
pub(crate) struct FilesArguments {
    /// Backup files; one stripe is enough
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Position of the backup set
    #[arg(long, visible_alias = "file", value_name = "N", default_value_t = 1, value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: u16,
    /// As -o wide
    #[arg(long, conflicts_with = "output")]
    pub(crate) table: bool,
    #[command(flatten)]
    pub(crate) layout: LayoutArguments,
}

/// `windlass label`
#[derive(Debug, Args)]
pub(crate) struct LabelArguments {
    /// Backup file
    pub(crate) media: String,
    /// As -o wide
    #[arg(long, conflicts_with = "output")]
    pub(crate) table: bool,
    #[command(flatten)]
    pub(crate) layout: LayoutArguments,
}
