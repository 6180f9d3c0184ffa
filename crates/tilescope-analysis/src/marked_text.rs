//! User input with marks below an error.

use std::ops::Range;

/// The problem, then the text, then marks below the characters `at`, counted from 0.
pub fn marked(problem: &str, text: &str, at: &Range<usize>) -> String {
    let letters = text.replace(char::is_control, " ");
    let marks = "^".repeat(at.len().max(1));
    format!("{problem}\n  {letters}\n  {:1$}{marks}", "", at.start)
}

/// Text that is read word by word. Every word comes with its position, for marks of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordReader {
    letters: Vec<char>,
    at: usize,
}

impl WordReader {
    /// Creates a reader at the start of `text`.
    pub fn new(text: &str) -> Self {
        Self { letters: text.chars().collect(), at: 0 }
    }

    /// Skips spaces and reads the characters that satisfy `belongs`, with their positions; empty if
    /// the next character does not.
    pub fn word(&mut self, belongs: impl Fn(char) -> bool) -> (String, Range<usize>) {
        while self.letters.get(self.at).is_some_and(|letter| letter.is_whitespace()) {
            self.at += 1;
        }
        let start = self.at;
        while self.letters.get(self.at).is_some_and(|letter| belongs(*letter)) {
            self.at += 1;
        }
        let word = self.letters.get(start..self.at).unwrap_or_default().iter().collect();
        (word, start..self.at)
    }

    /// True if only spaces remain.
    pub fn is_at_end(&self) -> bool {
        let left = self.letters.get(self.at..).unwrap_or_default();
        left.iter().all(|letter| letter.is_whitespace())
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.letters.iter().collect()
    }
}
