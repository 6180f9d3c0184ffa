//! What the window tells its user.

/// How a message is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// What was asked for is done.
    Done,
    /// It is done, but not quite as asked, or something wants attention.
    Warning,
    /// It could not be done.
    Error,
}

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Done, Self::Warning, Self::Error];

    /// The word before the message: nothing is told by a colour alone.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Warning => "Note",
            Self::Error => "Error",
        }
    }
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// How it is meant.
    pub kind: MessageKind,
    /// What it says.
    pub text: String,
}

impl StatusMessage {
    /// What was asked for is done.
    pub fn done(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Done, text: text.into() }
    }

    /// Something wants attention.
    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Warning, text: text.into() }
    }

    /// Something could not be done.
    pub fn error(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Error, text: text.into() }
    }
}
