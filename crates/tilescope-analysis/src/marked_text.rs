//! What somebody wrote, with marks below the letters that something is wrong with.

use std::ops::Range;

/// What is wrong, then the text, then marks below the letters `at`, counted from 0.
pub fn marked(problem: &str, text: &str, at: &Range<usize>) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let letters: String = text.chars().map(plain).collect();
    let marks = "^".repeat(at.len().max(1));
    format!("{problem}\n  {letters}\n  {:1$}{marks}", "", at.start)
}
