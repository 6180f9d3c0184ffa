//! The clauses of a query that came over the pipe: read as a small language, and written down again
//! as what was understood, so that nothing else ever reaches SQLite.

// Everything here reads text that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::fmt::Write as _;

/// Longest clauses that are read.
const MAX_BYTES: usize = 2048;
/// What stands between words and numbers.
const SIGNS: [&str; 8] = ["<=", ">=", "=", "<", ">", "(", ")", ","];
const COMPARISONS: [&str; 5] = ["<=", ">=", "=", "<", ">"];

/// Clauses as they can be asked of a table with `columns`: conditions that must all be true, an
/// order, a limit. `None` for everything else.
///
/// ```text
/// [WHERE condition {AND condition}] [ORDER BY column {, column}] [LIMIT number]
/// condition: 1 | column comparison value | column BETWEEN value AND value
///          | column IS [NOT] NULL | ( condition {OR condition} )
/// value: number | ?number | 'letters'
/// ```
pub(super) fn understood(text: &str, columns: &[String], params: usize) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut reader = ClauseReader { rest: text, sql: String::new(), columns, params };
    reader.clauses()?;
    reader.peek().is_none().then_some(reader.sql)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A keyword or the name of a column.
    Word(&'a str),
    /// A name between double quotes.
    Quoted(&'a str),
    Number(u64),
    /// The value with this number, from 1.
    Param(usize),
    Letters(&'a str),
    Sign(&'static str),
    /// Nothing that belongs here.
    Other,
}

struct ClauseReader<'a> {
    rest: &'a str,
    /// What was understood so far.
    sql: String,
    columns: &'a [String],
    params: usize,
}

impl<'a> ClauseReader<'a> {
    fn clauses(&mut self) -> Option<()> {
        if self.keyword("WHERE").is_some() {
            self.condition(true)?;
            while self.keyword("AND").is_some() {
                self.condition(true)?;
            }
        }
        if self.keyword("ORDER").is_some() {
            self.keyword("BY")?;
            self.column()?;
            while self.sign(&[","]).is_some() {
                self.column()?;
            }
        }
        if self.keyword("LIMIT").is_some() {
            self.number()?;
        }
        Some(())
    }

    fn condition(&mut self, may_have_alternatives: bool) -> Option<()> {
        if may_have_alternatives && self.sign(&["("]).is_some() {
            self.condition(false)?;
            while self.keyword("OR").is_some() {
                self.condition(false)?;
            }
            return self.sign(&[")"]);
        }
        if matches!(self.peek(), Some((Token::Number(_), _))) {
            return self.number();
        }
        self.column()?;
        if self.keyword("IS").is_some() {
            let _ = self.keyword("NOT");
            return self.keyword("NULL");
        }
        if self.keyword("BETWEEN").is_some() {
            self.value()?;
            self.keyword("AND")?;
            return self.value();
        }
        self.sign(&COMPARISONS)?;
        self.value()
    }

    fn column(&mut self) -> Option<()> {
        let (Token::Word(name) | Token::Quoted(name), rest) = self.peek()? else { return None };
        let is_known = name == "rowid" || self.columns.iter().any(|column| column == name);
        // A quote in a name would end it.
        let is_plain = is_known && !name.contains('"');
        is_plain.then(|| self.wrote(format_args!("\"{name}\""), rest))
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            (Token::Number(_), _) => self.number(),
            (Token::Param(number), rest) if (1..=self.params).contains(&number) => {
                self.wrote(format_args!("?{number}"), rest);
                Some(())
            }
            (Token::Letters(letters), rest) => {
                self.wrote(format_args!("'{letters}'"), rest);
                Some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        let (Token::Number(number), rest) = self.peek()? else { return None };
        self.wrote(format_args!("{number}"), rest);
        Some(())
    }

    fn keyword(&mut self, word: &'static str) -> Option<()> {
        let (token, rest) = self.peek()?;
        (token == Token::Word(word)).then(|| self.wrote(format_args!("{word}"), rest))
    }

    fn sign(&mut self, wanted: &[&str]) -> Option<()> {
        let (Token::Sign(sign), rest) = self.peek()? else { return None };
        wanted.contains(&sign).then(|| self.wrote(format_args!("{sign}"), rest))
    }

    fn wrote(&mut self, words: std::fmt::Arguments, rest: &'a str) {
        // Writing to a text cannot fail.
        let _ = write!(self.sql, "{words} ");
        self.rest = rest;
    }

    /// The next token and what is behind it; `None` at the end.
    fn peek(&self) -> Option<(Token<'a>, &'a str)> {
        let text = self.rest.trim_start_matches(' ');
        let first = text.chars().next()?;
        let split = |end: usize| (text.get(..end).unwrap_or(""), text.get(end..).unwrap_or(""));
        let of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let word_end = |text: &str| text.find(|letter| !of_word(letter)).unwrap_or(text.len());
        let (token, rest) = match first {
            '"' => between(text, '"').map(|(name, rest)| (Token::Quoted(name), rest)),
            '\'' => between(text, '\'')
                .filter(|(letters, _)| letters.chars().all(|l| of_word(l) || l == ' '))
                .map(|(letters, rest)| (Token::Letters(letters), rest)),
            '?' => {
                let (number, rest) = text.split_at(1 + word_end(text.get(1..).unwrap_or("")));
                let number = number.get(1..).and_then(|number| number.parse().ok());
                number.map(|number| (Token::Param(number), rest))
            }
            '0'..='9' => {
                let (number, rest) = split(word_end(text));
                // As far as SQLite counts in integers.
                let number = number.parse().ok().filter(|number| *number <= i64::MAX as u64);
                number.map(|number| (Token::Number(number), rest))
            }
            _ if of_word(first) => {
                let (word, rest) = split(word_end(text));
                Some((Token::Word(word), rest))
            }
            _ => SIGNS
                .into_iter()
                .find_map(|sign| text.strip_prefix(sign).map(|rest| (Token::Sign(sign), rest))),
        }
        .unwrap_or((Token::Other, ""));
        Some((token, rest))
    }
}

/// What is between a quote at the beginning of a text and the next one, and what is behind that.
fn between(text: &str, quote: char) -> Option<(&str, &str)> {
    text.strip_prefix(quote)?.split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn read(text: &str) -> Option<String> {
        let columns = ["id", "ipu", "kind", "first_cycle", "tile", "odd\"name"].map(str::to_owned);
        understood(text, &columns, 2)
    }

    #[test]
    fn what_readers_ask_is_understood() {
        let good = [
            "",
            "LIMIT 1",
            "WHERE id = ?1",
            "ORDER BY id LIMIT 16",
            "WHERE \"id\" BETWEEN ?1 AND ?2 AND kind IS NOT NULL ORDER BY \"id\", tile",
            "WHERE 1 AND kind = 'iteration' AND (ipu IS NULL OR ipu = 3) AND first_cycle BETWEEN 0 \
             AND 99 AND tile > 5 ORDER BY first_cycle, id LIMIT 4294967295",
            "WHERE rowid > ?1 AND tile >= 3 AND tile < 4 ORDER BY rowid",
        ];
        for text in good {
            assert!(read(text).is_some(), "{text}");
        }
        let sql = read("WHERE id=?1   LIMIT 2").unwrap();
        assert_eq!(sql, "WHERE \"id\" = ?1 LIMIT 2 ");
    }

    #[test]
    fn everything_else_is_refused() {
        let bad = [
            "; DROP TABLE steps",
            "WHERE id = ?3",
            "WHERE id = ?0",
            "WHERE id = (SELECT 1)",
            "WHERE id = load_extension('x')",
            "WHERE id = 1 UNION SELECT 1",
            "WHERE id = 1 --",
            "WHERE id = 'a''b'",
            "WHERE kind LIKE 'x'",
            "WHERE \"odd\"\"name\" = 1",
            "WHERE other = 1",
            "ORDER BY random()",
            "ORDER BY id DESC",
            "LIMIT -1",
            "LIMIT 1 OFFSET 5",
            "WHERE ((id = 1))",
            "WHERE id = 99999999999999999999",
            "WHERE",
            "where id = 1",
        ];
        for text in bad {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"WHERE 1 AND ".repeat(1000)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn what_is_understood_is_understood_again(
            words in proptest::collection::vec(
                "WHERE|AND|OR|ORDER|BY|LIMIT|IS|NOT|NULL|BETWEEN|id|tile|\"id\"|[0-9]{1,3}|\\?[0-3]\
                 |'[a-z]*'|[()=<>,;-]|\\PC",
                0..12,
            ),
        ) {
            let text = words.join(" ");
            if let Some(sql) = read(&text) {
                prop_assert_eq!(read(&sql), Some(sql.clone()));
                prop_assert!(!sql.contains([';', '-']));
            }
        }
    }
}
