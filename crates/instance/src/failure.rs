//! The failure of a statement.

use windlass_base::Message;
use windlass_base::message::table;

/// The messages of a failed statement, cause first, and whether the rest of its batch still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In order, cause first.
    pub messages: Vec<Message>,
    pub batch: AfterFailure,
    /// Whether the statement did its work and only reports a loss.
    pub is_done: bool,
}

/// What happens to the rest of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// The next statement runs, as after most errors in T-SQL.
    Continues,
    /// The next statement runs, also with `XACT_ABORT`: RAISERROR made the error.
    Raised,
    /// The batch ends, because a later statement would run on the wrong state.
    Ends,
}

/// Conversions that fail: they end their batch with its transaction.
const CONVERSIONS: &[u32] = &[241, 242, 245, 248, 8114, 8169];

impl Failure {
    /// Whether it ends its batch and its transaction whatever `XACT_ABORT` is.
    pub(crate) fn ends_transaction(&self) -> bool {
        let mut errors = self.messages.iter().filter(|message| message.is_error());
        errors.any(|error| CONVERSIONS.contains(&error.number))
    }

    /// A failure that ends the batch.
    pub fn ending(message: Message) -> Self {
        Self {
            messages: vec![message],
            batch: AfterFailure::Ends,
            is_done: false,
        }
    }

    /// The same failure, raised at `line` of `procedure`, if its messages have no place yet.
    #[must_use]
    pub(crate) fn placed(mut self, line: u32, procedure: Option<&str>) -> Self {
        let placed = self.messages.into_iter();
        self.messages = placed
            .map(|message| place(message, line, procedure))
            .collect();
        self
    }

    /// Reports what a successful statement lost.
    pub fn of_loss(messages: Vec<Message>) -> Self {
        Self {
            is_done: true,
            ..Self::from(messages)
        }
    }

    /// Adapts the failure to BACKUP: the message's state shows that its devices were opened for writing.
    #[must_use]
    pub fn of_backup(mut self) -> Self {
        let unopened = table::cannot_open_device("", "").number;
        for message in &mut self.messages {
            if message.number == unopened {
                message.state = 1;
            }
        }
        self
    }

    /// Appends a message that says that nothing was done, unless something was.
    #[must_use]
    pub fn then(mut self, message: Message) -> Self {
        if !self.is_done {
            self.messages.push(message);
        }
        self
    }
}

/// The message, raised at `line` of `procedure`, if it has no place yet.
pub(crate) fn place(mut message: Message, line: u32, procedure: Option<&str>) -> Message {
    if message.line == 0 {
        message.line = line;
        message.procedure = procedure.map(Into::into);
    }
    message
}

impl From<Message> for Failure {
    fn from(message: Message) -> Self {
        Self {
            messages: vec![message],
            batch: AfterFailure::Continues,
            is_done: false,
        }
    }
}

impl From<Vec<Message>> for Failure {
    fn from(messages: Vec<Message>) -> Self {
        Self {
            messages,
            batch: AfterFailure::Continues,
            is_done: false,
        }
    }
}
