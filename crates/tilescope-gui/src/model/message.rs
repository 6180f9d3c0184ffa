//! What the window tells its user.

/// How a message is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for is done.
    Done,
    /// It is done, but not quite as asked, or something wants attention.
    Warning,
    /// It could not be done.
    Error,
}

impl Kind {
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
pub struct Message {
    /// How it is meant.
    pub kind: Kind,
    /// What it says.
    pub text: String,
}

impl Message {
    /// What was asked for is done.
    pub fn done(text: impl Into<String>) -> Self {
        Self { kind: Kind::Done, text: text.into() }
    }

    /// Something wants attention.
    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { kind: Kind::Warning, text: text.into() }
    }

    /// Something could not be done.
    pub fn error(text: impl Into<String>) -> Self {
        Self { kind: Kind::Error, text: text.into() }
    }
}
