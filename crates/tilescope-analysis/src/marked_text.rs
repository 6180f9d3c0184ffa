//! What somebody wrote, with marks below the letters that something is wrong with.

use std::ops::Range;

/// What is wrong, then the text, then marks below the letters `at`, counted from 0.
pub fn marked(problem: &str, text: &str, at: &Range<usize>) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let letters: String = text.chars().map(plain).collect();
    let marks = "^".repeat(at.len().max(1));
    format!("{problem}\n  {letters}\n  {:1$}{marks}", "", at.start)
}

/// Text that is read word by word: every word comes with its place, for errors to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordReader {
    letters: Vec<char>,
    at: usize,
}

impl WordReader {
    /// Reads from the first letter of `text`.
    pub fn new(text: &str) -> Self {
        Self { letters: text.chars().collect(), at: 0 }
    }

    /// The next letters that `belongs` is true of, behind spaces, and where they are; empty where the
    /// next letter is another.
    pub fn word(&mut self, belongs: impl Fn(char) -> bool) -> (String, Range<usize>) {
        let rest = |at: usize| self.letters.get(at..).unwrap_or_default().iter();
        self.at += rest(self.at).take_while(|letter| letter.is_whitespace()).count();
        let length = rest(self.at).take_while(|letter| belongs(**letter)).count();
        let (word, start) = (rest(self.at).take(length).collect(), self.at);
        self.at += length;
        (word, start..self.at)
    }

    /// Whether nothing but spaces is left.
    pub fn is_at_end(&self) -> bool {
        let left = self.letters.get(self.at..).unwrap_or_default();
        left.iter().all(|letter| letter.is_whitespace())
    }

    /// All of the text.
    pub fn text(&self) -> String {
        self.letters.iter().collect()
    }
}
