//! Messages of the window to its user.

/// The severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// The request was completed.
    Done,
    /// The request was completed with a deviation, or something needs attention.
    Warning,
    /// The request failed.
    Error,
}

impl MessageKind {
    /// All kinds of messages.
    pub const ALL: [Self; 3] = [Self::Done, Self::Warning, Self::Error];

    /// The word before the message, so that colour is not the only sign of its kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Warning => "Note",
            Self::Error => "Error",
        }
    }
}

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// The severity of the message.
    pub kind: MessageKind,
    /// The text of the message.
    pub text: String,
}

impl StatusMessage {
    /// A message that a request was completed.
    pub fn done(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Done, text: text.into() }
    }

    /// A message about something that needs attention.
    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Warning, text: text.into() }
    }

    /// A message about a failure.
    pub fn error(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Error, text: text.into() }
    }
}

/// Messages that the user has not dismissed, oldest first.
#[derive(Debug, Default)]
pub struct MessageList {
    messages: Vec<StatusMessage>,
}

impl MessageList {
    /// The messages, oldest first.
    pub fn as_slice(&self) -> &[StatusMessage] {
        &self.messages
    }

    /// Appends a message, and removes an older one with the same text.
    pub fn push(&mut self, message: StatusMessage) {
        self.messages.retain(|other| *other != message);
        self.messages.push(message);
    }

    /// Removes a message that has been read. A missing index is not an error.
    pub(crate) fn dismiss(&mut self, index: usize) {
        if index < self.messages.len() {
            self.messages.remove(index);
        }
    }

    /// Removes every message.
    pub fn clear(&mut self) {
        self.messages.clear();
    }
}

impl Extend<StatusMessage> for MessageList {
    fn extend<T: IntoIterator<Item = StatusMessage>>(&mut self, messages: T) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_can_be_dismissed_only_once() {
        let mut list = MessageList::default();
        list.extend(["a", "b"].map(StatusMessage::done));
        list.dismiss(0);
        list.dismiss(1);
        assert_eq!(list.as_slice(), [StatusMessage::done("b")]);
    }

    #[test]
    fn equal_messages_are_shown_once() {
        let mut list = MessageList::default();
        list.extend(["a", "b", "a"].map(StatusMessage::done));
        list.push(StatusMessage::error("a"));
        let expected =
            [StatusMessage::done("b"), StatusMessage::done("a"), StatusMessage::error("a")];
        assert_eq!(list.as_slice(), expected);
    }
}
