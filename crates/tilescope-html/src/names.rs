//! Untrusted names: shortened, and without characters that would change the appearance of a page.

use tilescope_report::units::grouped;

/// The maximum number of letters of a name that is shown completely, and the number shown of longer
/// ones.
const NAME: (usize, usize) = (500, 400);
/// The same for sentences, which may contain names.
const PROSE: (usize, usize) = (2_000, 1_800);

/// A name as pages show it: a name that is too long is cut, with its length.
pub(crate) fn shown(name: &str) -> String {
    cut(name, NAME)
}

/// The same for a sentence.
pub(crate) fn prose(text: &str) -> String {
    cut(text, PROSE)
}

fn cut(text: &str, (longest, kept): (usize, usize)) -> String {
    // The rest of a name of megabytes is not read.
    let first: String = text
        .chars()
        .take(longest + 1)
        .map(|letter| if is_order(letter) { '\u{fffd}' } else { letter })
        .collect();
    if first.chars().count() <= longest {
        return first;
    }
    let first: String = first.chars().take(kept).collect();
    format!("{first}… ({} bytes)", grouped(text.len() as u64))
}

/// True for control characters: those for terminals, and those that change the direction of
/// writing.
pub(crate) fn is_order(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes text for an element or an attribute in double quotes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if is_order(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_with_their_length() {
        let name = "n".repeat(10 << 20);
        let shortened = shown(&name);
        assert!(shortened.ends_with("… (10,485,760 bytes)"), "{shortened}");
        assert_eq!(shortened.chars().count(), NAME.1 + "… (10,485,760 bytes)".chars().count());
        assert_eq!(shown(&"é".repeat(NAME.0)), "é".repeat(NAME.0), "letters, not bytes");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}b"), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(escaped("</script>\"'&\0"), "&lt;/script&gt;&quot;&#39;&amp;\u{fffd}");
    }
}
