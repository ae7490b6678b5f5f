//! How a statement fails.

use windlass_base::Message;
use windlass_base::message::table;

/// What a failed statement sends, cause first, and whether the rest of its batch still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// Whether the batch goes on with its next statement.
    pub batch: AfterFailure,
    /// Whether the statement did its work all the same, and only has to tell that something is lost.
    pub is_done: bool,
}

/// What becomes of the rest of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// The next statement runs, as after most errors in T-SQL.
    Continues,
    /// The batch ends here: a later statement would work on something it was not meant for.
    Ends,
}

impl Failure {
    /// A failure after which the batch ends.
    pub fn ending(message: Message) -> Self {
        Self {
            messages: vec![message],
            batch: AfterFailure::Ends,
            is_done: false,
        }
    }

    /// What a statement lost that did its work.
    pub fn of_loss(messages: Vec<Message>) -> Self {
        Self {
            is_done: true,
            ..Self::from(messages)
        }
    }

    /// The same failure as BACKUP sends it: its devices are opened to be written, which the state of the
    /// message tells.
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

    /// The same failure with a further message at its end, which tells that nothing was done.
    #[must_use]
    pub fn then(mut self, message: Message) -> Self {
        if !self.is_done {
            self.messages.push(message);
        }
        self
    }
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
