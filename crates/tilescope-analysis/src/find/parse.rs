//! Parser of queries; every error has the position of a character.

use super::query::{
    NumberRange, QueryAmount, QueryCondition, QueryTerm, SearchList, SearchQuery, SearchQueryError,
    TextPattern,
};
use crate::comparison::LimitComparison;
use std::str::FromStr;

/// Limit of a compiled regular expression: enough for names, without a noticeable cost.
const MAX_REGEX_BYTES: usize = 1 << 20;

const FIELDS: &str = "name, type, in, ipu, tile, cycles, bytes, count";

impl FromStr for SearchQuery {
    type Err = SearchQueryError;

    fn from_str(text: &str) -> Result<Self, SearchQueryError> {
        let mut reader = QueryParser { letters: text.chars().collect(), at: 0 };
        let mut terms = Vec::new();
        loop {
            reader.skip_space();
            if reader.peek().is_none() {
                return Ok(Self { terms });
            }
            terms.push(reader.term()?);
        }
    }
}

/// A regular expression that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    #[error("{0}")]
    Syntax(String),
    #[error("this regular expression is too large")]
    TooLarge,
}

/// Compiles a regular expression of a query, case-insensitive.
pub(super) fn regex(text: &str) -> Result<regex::Regex, PatternError> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.case_insensitive(true).size_limit(MAX_REGEX_BYTES);
    builder.build().map_err(|error| match error {
        // The last line is the message; those before it repeat the expression.
        regex::Error::Syntax(words) => {
            let last = words.lines().last().unwrap_or_default();
            PatternError::Syntax(last.trim_start_matches("error: ").to_owned())
        }
        _ => PatternError::TooLarge,
    })
}

struct QueryParser {
    letters: Vec<char>,
    at: usize,
}

impl QueryParser {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn error<T>(&self, at: usize, problem: impl Into<String>) -> Result<T, SearchQueryError> {
        Err(SearchQueryError { at, problem: problem.into() })
    }

    fn term(&mut self) -> Result<QueryTerm, SearchQueryError> {
        let negated = self.peek() == Some('-');
        let start = self.at;
        self.at += usize::from(negated);
        if negated && self.peek().is_none_or(char::is_whitespace) {
            return self.error(start, "expected a term after the minus");
        }
        let test = match self.field() {
            Some((start, field)) => self.field_test(start, &field)?,
            None => QueryCondition::Name(self.pattern("a name")?),
        };
        Ok(QueryTerm { negated, test })
    }

    /// The letters before a sign such as `:`, if such a sign follows.
    fn field(&mut self) -> Option<(usize, String)> {
        let rest = &self.letters[self.at..];
        let length = rest.iter().take_while(|letter| letter.is_ascii_alphabetic()).count();
        let sign = rest.get(length)?;
        let next = rest.get(length + 1);
        // `poplin::ConvPartial` and `Copy<half>` are names.
        let name = match sign {
            ':' => next == Some(&':'),
            '<' | '>' => next.is_some_and(|next| !next.is_ascii_digit() && *next != '='),
            _ => false,
        };
        let is_unequal = *sign == '!' && next == Some(&'=') && self.at_amount(length);
        let is_sign = ":=~<>".contains(*sign) || is_unequal;
        if length == 0 || !is_sign || (name && !self.at_amount(length)) {
            return None;
        }
        let start = self.at;
        self.at += length;
        Some((start, rest[..length].iter().collect::<String>().to_lowercase()))
    }

    /// True if the next `length` letters are the name of an amount.
    fn at_amount(&self, length: usize) -> bool {
        let word: String = self.letters[self.at..self.at + length].iter().collect();
        QueryAmount::ALL.iter().any(|amount| amount.name() == word.to_lowercase())
    }

    fn field_test(
        &mut self,
        start: usize,
        field: &str,
    ) -> Result<QueryCondition, SearchQueryError> {
        if let Some(amount) = QueryAmount::ALL.into_iter().find(|amount| amount.name() == field) {
            return self.amount(amount);
        }
        if !["name", "type", "in", "ipu", "tile"].contains(&field) {
            let hint = "quote it to search for it as text";
            let problem = format!("unknown field {field:?}; known: {FIELDS}; {hint}");
            return self.error(start, problem);
        }
        let at = self.at;
        let sign = self.peek().unwrap_or(':');
        self.at += 1;
        match (field, sign) {
            ("name", '=') => Ok(QueryCondition::Name(self.exact("a name")?)),
            ("name", ':' | '~') => Ok(QueryCondition::Name(self.pattern("a name")?)),
            ("type", '=') => Ok(QueryCondition::Type(self.exact("a type")?)),
            ("type", ':' | '~') => Ok(QueryCondition::Type(self.pattern("a type")?)),
            ("in", ':' | '=') => self.source(),
            ("ipu", ':' | '=') => Ok(QueryCondition::Ipu(self.spans("IPU")?)),
            ("tile", ':' | '=') => Ok(QueryCondition::Tile(self.spans("tile")?)),
            _ => self.error(at, format!("{field} takes a colon, not {sign:?}")),
        }
    }

    fn amount(&mut self, amount: QueryAmount) -> Result<QueryCondition, SearchQueryError> {
        // Signs have at most two letters.
        let next: String = self.letters[self.at..].iter().take(2).collect();
        let known = LimitComparison::ALL.into_iter().find(|known| next.starts_with(known.sign()));
        let comparison = match known {
            Some(comparison) => {
                self.at += comparison.sign().len();
                comparison
            }
            None if matches!(self.peek(), Some(':' | '=')) => {
                self.at += 1;
                LimitComparison::Equal
            }
            None => {
                let problem = format!("{} takes >, >=, <, <=, = or !=", amount.name());
                return self.error(self.at, problem);
            }
        };
        let at = self.at;
        let word = self.word();
        match number(&word) {
            Some(value) => Ok(QueryCondition::Amount(amount, comparison, value)),
            None if word.is_empty() => self.error(at, "expected a number such as 10k or 64KiB"),
            None => {
                let problem = format!("{word:?} is not a number such as 800, 10k, 2.5M or 64KiB");
                self.error(at, problem)
            }
        }
    }

    fn source(&mut self) -> Result<QueryCondition, SearchQueryError> {
        let at = self.at;
        let word = self.word().to_lowercase();
        let plural = format!("{word}s");
        let found = SearchList::ALL
            .into_iter()
            .find(|list| [&word, &plural].iter().any(|name| list.name() == *name));
        match found {
            Some(source) => Ok(QueryCondition::In(source)),
            None => {
                let known: Vec<&str> = SearchList::ALL.iter().map(|source| source.name()).collect();
                self.error(at, format!("unknown list {word:?}; known: {}", known.join(", ")))
            }
        }
    }

    /// Numbers and ranges of them: `3`, `0..3`, `0-3`, `1,4..7`.
    fn spans(&mut self, what: &str) -> Result<Vec<NumberRange>, SearchQueryError> {
        let mut spans = Vec::new();
        loop {
            let first = self.index(what)?;
            let at = self.at;
            let mut last = first;
            if self.peek() == Some('-') {
                self.at += 1;
                last = self.index(what)?;
            } else if self.letters[self.at..].starts_with(&['.', '.']) {
                self.at += 2;
                last = self.index(what)?;
            }
            if last < first {
                return self.error(at, format!("{first}..{last} ends before it starts"));
            }
            spans.push(NumberRange { first, last });
            match self.peek() {
                Some(',') => self.at += 1,
                None => return Ok(spans),
                Some(letter) if letter.is_whitespace() => return Ok(spans),
                Some(letter) => {
                    let problem = format!("unexpected {letter:?} in a list of {what}s");
                    return self.error(self.at, problem);
                }
            }
        }
    }

    fn index(&mut self, what: &str) -> Result<u32, SearchQueryError> {
        let at = self.at;
        let digits: String =
            self.letters[at..].iter().take_while(|letter| letter.is_ascii_digit()).collect();
        self.at += digits.len();
        match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) if digits.is_empty() => {
                self.error(at, format!("expected the number of a{} {what}", vowel(what)))
            }
            Err(_) => self.error(at, format!("{what} {digits} does not exist")),
        }
    }

    /// The characters up to the next space.
    fn word(&mut self) -> String {
        let rest = self.letters[self.at..].iter();
        let word: String = rest.take_while(|letter| !letter.is_whitespace()).collect();
        self.at += word.chars().count();
        word
    }

    fn exact(&mut self, what: &str) -> Result<TextPattern, SearchQueryError> {
        let at = self.at;
        match self.pattern(what)? {
            TextPattern::Contains(text) | TextPattern::Equals(text) => {
                Ok(TextPattern::Equals(text))
            }
            TextPattern::Regex(_) => {
                self.error(at, "use = with text and ~ with a regular expression")
            }
        }
    }

    /// A word, text in quotes, or a regular expression between slashes.
    fn pattern(&mut self, what: &str) -> Result<TextPattern, SearchQueryError> {
        let start = self.at;
        match self.peek() {
            Some('"') => self.quoted().map(TextPattern::Contains),
            Some('/') if self.closes() => {
                let text = self.between_slashes();
                match regex(&text) {
                    Ok(_) => Ok(TextPattern::Regex(text)),
                    Err(error) => self.error(start, error.to_string()),
                }
            }
            Some(letter) if !letter.is_whitespace() => Ok(TextPattern::Contains(self.word())),
            _ => self.error(start, format!("expected {what}")),
        }
    }

    fn quoted(&mut self) -> Result<String, SearchQueryError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(letter) = self.peek() {
            self.at += 1;
            match letter {
                '"' => return Ok(text),
                '\\' => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                letter => text.push(letter),
            }
        }
        self.error(start, "this quote is not closed")
    }

    /// True if the word that starts here with a slash also ends with one: `/conv/relu` is a name.
    fn closes(&self) -> bool {
        let Some(end) = self.slash_behind() else { return false };
        self.letters.get(end + 1).is_none_or(|letter| letter.is_whitespace()) && end > self.at + 1
    }

    /// Index of the slash that ends a regular expression starting here.
    fn slash_behind(&self) -> Option<usize> {
        let mut at = self.at + 1;
        while let Some(letter) = self.letters.get(at) {
            match letter {
                '\\' => at += 2,
                '/' => return Some(at),
                _ => at += 1,
            }
        }
        None
    }

    fn between_slashes(&mut self) -> String {
        let end = self.slash_behind().unwrap_or(self.letters.len());
        let text: String = self.letters[self.at + 1..end].iter().collect();
        self.at = end + 1;
        text.replace("\\/", "/")
    }
}

fn vowel(what: &str) -> &'static str {
    if what.starts_with(['I', 'a', 'e', 'i', 'o']) { "n" } else { "" }
}

/// A whole number with a unit: `10k`, `2.5M`, `64KiB`, `8B`.
fn number(word: &str) -> Option<u64> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (digits, unit) = word.split_at(digits.unwrap_or(word.len()));
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" | "ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = digits.parse::<f64>().ok()? * factor as f64;
    if value < u64::MAX as f64 { Some(value.round() as u64) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn parsed(text: &str) -> SearchQuery {
        text.parse().unwrap()
    }

    #[test]
    fn typed_queries_are_parsed() {
        let query = parsed("type:StreamCopyMid ipu:0..3 cycles>10k tile:17 name~attn -\"a b\"");
        let tests: Vec<QueryCondition> = query.terms.iter().map(|term| term.test.clone()).collect();
        assert_eq!(
            tests,
            [
                QueryCondition::Type(TextPattern::Contains("StreamCopyMid".to_owned())),
                QueryCondition::Ipu(vec![NumberRange { first: 0, last: 3 }]),
                QueryCondition::Amount(QueryAmount::Cycles, LimitComparison::Above, 10_000),
                QueryCondition::Tile(vec![NumberRange { first: 17, last: 17 }]),
                QueryCondition::Name(TextPattern::Contains("attn".to_owned())),
                QueryCondition::Name(TextPattern::Contains("a b".to_owned())),
            ]
        );
        assert!(query.terms[5].negated);
        let vertex = parsed("poplin::ConvPartial Copy<half>");
        assert_eq!(
            vertex.terms[1].test,
            QueryCondition::Name(TextPattern::Contains("Copy<half>".to_owned()))
        );
        let slashes = parsed("/conv[0-9]+/ layer1/relu /layer1/relu");
        assert_eq!(
            slashes.terms[0].test,
            QueryCondition::Name(TextPattern::Regex("conv[0-9]+".to_owned()))
        );
        assert_eq!(
            slashes.terms[2].test,
            QueryCondition::Name(TextPattern::Contains("/layer1/relu".to_owned()))
        );
    }

    #[test]
    fn numbers_have_units() {
        let cases = [("64KiB", 65_536), ("10k", 10_000), ("2.5M", 2_500_000), ("8B", 8)];
        for (text, value) in cases {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["", "k", "1.2.3", "12 parsecs", "99999999999999999999", "-1"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn errors_have_character_positions() {
        let cases = [
            ("conv ipu:x", 9),
            ("typ:Sync", 0),
            ("cycles>", 7),
            ("a cycles>ten", 9),
            ("a \"b", 2),
            ("in:nowhere", 3),
            ("ipu:3..1", 5),
            ("ipu:3;4", 5),
            ("/(/", 0),
            ("ipu>3", 3),
            ("cycles~3", 6),
            ("a -", 2),
            ("卷积 ipu:", 7),
        ];
        for (text, at) in cases {
            let error = text.parse::<SearchQuery>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }

    fn pattern() -> impl Strategy<Value = TextPattern> {
        prop_oneof![
            any::<String>().prop_map(TextPattern::Contains),
            any::<String>().prop_map(TextPattern::Equals),
            "[a-z/.+]{1,8}"
                .prop_filter("must compile", |text| regex(text).is_ok())
                .prop_map(TextPattern::Regex),
        ]
    }

    fn spans() -> impl Strategy<Value = Vec<NumberRange>> {
        let span = (any::<u32>(), any::<u32>())
            .prop_map(|(a, b)| NumberRange { first: a.min(b), last: a.max(b) });
        proptest::collection::vec(span, 1..4)
    }

    fn test() -> impl Strategy<Value = QueryCondition> {
        let amount = (0..QueryAmount::ALL.len(), 0..LimitComparison::ALL.len(), any::<u64>());
        prop_oneof![
            pattern().prop_map(QueryCondition::Name),
            pattern().prop_map(QueryCondition::Type),
            (0..SearchList::ALL.len()).prop_map(|at| QueryCondition::In(SearchList::ALL[at])),
            spans().prop_map(QueryCondition::Ipu),
            spans().prop_map(QueryCondition::Tile),
            amount.prop_map(|(amount, comparison, value)| QueryCondition::Amount(
                QueryAmount::ALL[amount],
                LimitComparison::ALL[comparison],
                value
            )),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn any_text_is_a_query_or_has_an_error_within_it(text in any::<String>()) {
            match text.parse::<SearchQuery>() {
                Ok(query) => prop_assert_eq!(parsed(&query.to_string()), query),
                Err(error) => prop_assert!(error.at <= text.chars().count()),
            }
        }

        #[test]
        fn pieces_of_queries_are_queries_or_errors(
            text in "(-?(name|type|ipu|tile|cycles|in|x)?[:=~<>]{0,2}[/\"a-c0-3.,kB -]{0,6} ?){0,4}"
        ) {
            match text.parse::<SearchQuery>() {
                Ok(query) => prop_assert_eq!(parsed(&query.to_string()), query),
                Err(error) => prop_assert!(error.at <= text.chars().count()),
            }
        }

        #[test]
        fn queries_round_trip_through_text(
            terms in proptest::collection::vec((any::<bool>(), test()), 0..6)
        ) {
            let terms = terms.into_iter().map(|(negated, test)| QueryTerm { negated, test }).collect();
            let query = SearchQuery { terms };
            prop_assert_eq!(parsed(&query.to_string()), query);
        }
    }
}
