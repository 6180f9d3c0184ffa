//! Counts habits of an earlier house style that are hard to read: doc comments phrased as
//! questions, closures in place of functions, matches on booleans, odd phrases.
//!
//! Doc comments, comments, strings and `.then(…)` are read from tokens, so they count inside macro
//! calls too. Closures, tuple `let`s and matches are read from the syntax tree, which ends at macro
//! calls.

use proc_macro2::TokenTree;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Lit, Pat};

use crate::source::SourceFile;

/// First words of doc comments that are phrased as questions.
const QUESTION_WORDS: [&str; 3] = ["What", "Which", "Whether"];

/// Phrases of the dialect, in lower case, with single spaces.
const PHRASES: [&str; 8] = [
    "hang on",
    "hangs on",
    "told",
    "in vain",
    "of which",
    "one who",
    "that there is",
    "nothing of",
];

/// Words that make a closure's name a verb, alone or followed by others: `add`, `is_open`. Names of
/// conversions and iterators follow those of methods: `to_error`, `iter_lanes`.
const VERBS: [&str; 93] = [
    "add",
    "advance",
    "append",
    "apply",
    "assign",
    "begin",
    "build",
    "can",
    "choose",
    "clamp",
    "clear",
    "collect",
    "compare",
    "compute",
    "contains",
    "convert",
    "create",
    "decode",
    "describe",
    "differs",
    "draw",
    "emit",
    "encode",
    "ensure",
    "evaluate",
    "exists",
    "extend",
    "fail",
    "fetch",
    "fill",
    "find",
    "fits",
    "flush",
    "fold",
    "follow",
    "format",
    "get",
    "give",
    "has",
    "have",
    "insert",
    "intern",
    "is",
    "iter",
    "join",
    "keep",
    "let",
    "load",
    "make",
    "matches",
    "may",
    "measure",
    "merge",
    "mirror",
    "mix",
    "must",
    "needs",
    "normalize",
    "overlaps",
    "parse",
    "pick",
    "prepare",
    "put",
    "quote",
    "read",
    "refit",
    "refuse",
    "remove",
    "render",
    "renumber",
    "replace",
    "resolve",
    "retain",
    "run",
    "scale",
    "select",
    "send",
    "should",
    "simulate",
    "skip",
    "solve",
    "sort",
    "take",
    "tell",
    "to",
    "toggle",
    "try",
    "update",
    "visit",
    "wait",
    "walk",
    "was",
    "write",
];

/// Words that are nouns alone and verbs before an object: `count` is a noun, `count_rows` is not.
const VERBS_WITH_OBJECT: [&str; 32] = [
    "ask", "bound", "call", "change", "check", "close", "copy", "count", "cut", "estimate",
    "group", "label", "list", "look", "map", "mark", "move", "name", "note", "open", "order",
    "place", "plot", "print", "push", "record", "report", "round", "search", "set", "show",
    "split",
];

/// Places of each habit in the product code of one file, or of several files.
#[derive(Clone, Default)]
pub(crate) struct DialectCounts {
    /// Number of doc comments, outer and inner, including `question_docs`.
    pub(crate) docs: usize,
    pub(crate) question_docs: Vec<String>,
    pub(crate) noun_closures: Vec<String>,
    pub(crate) tuple_lets: Vec<String>,
    pub(crate) bool_matches: Vec<String>,
    pub(crate) bool_thens: Vec<String>,
    pub(crate) phrases: Vec<String>,
}

impl DialectCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.docs += other.docs;
        self.question_docs.extend(other.question_docs);
        self.noun_closures.extend(other.noun_closures);
        self.tuple_lets.extend(other.tuple_lets);
        self.bool_matches.extend(other.bool_matches);
        self.bool_thens.extend(other.bool_thens);
        self.phrases.extend(other.phrases);
    }

    /// Counts closures, tuple `let`s and matches of a file.
    pub(crate) fn read_tree(&mut self, source: &SourceFile) {
        DialectReader { source, counts: self }.visit_file(&source.tree);
    }

    /// Counts one doc comment, given as its text and the number of its first line.
    pub(crate) fn read_doc(&mut self, source: &SourceFile, first_line: usize, text: &str) {
        self.docs += 1;
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric());
        if QUESTION_WORDS.contains(&first) {
            let opening: Vec<&str> = words.take(6).collect();
            let place = source.place(first_line);
            self.question_docs.push(format!("{place}  {first} {}", opening.join(" ")));
        }
        self.read_prose(source, (first_line..).zip(text.lines()));
    }

    /// Counts odd phrases in numbered lines of prose; a phrase may continue on the next line.
    pub(crate) fn read_prose<'a>(
        &mut self,
        source: &SourceFile,
        lines: impl Iterator<Item = (usize, &'a str)>,
    ) {
        let mut words: Vec<(usize, String)> = Vec::new();
        for (line, text) in lines {
            for word in text.split_whitespace() {
                words.push((line, word.to_lowercase()));
            }
        }
        for (at, (line, _)) in words.iter().enumerate() {
            if let Some(phrase) = PHRASES.iter().find(|phrase| starts_with(&words[at..], phrase)) {
                self.phrases.push(format!("{}  {phrase}", source.place(*line)));
            }
        }
    }

    /// Counts `.then_some(…)`, and `.then(…)` with a closure, at the head of `tokens`. Other calls
    /// are of `Ordering::then`, which takes no closure.
    pub(crate) fn read_then(&mut self, source: &SourceFile, tokens: &[TokenTree]) {
        let [TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(group), ..] = tokens
        else {
            return;
        };
        let takes_closure = match group.stream().into_iter().next() {
            Some(TokenTree::Punct(mark)) => mark.as_char() == '|',
            Some(TokenTree::Ident(keyword)) => keyword == "move",
            _ => false,
        };
        if dot.as_char() == '.' && (name == "then_some" || (name == "then" && takes_closure)) {
            let place = source.place(name.span().start().line);
            self.bool_thens.push(format!("{place}  {name}"));
        }
    }
}

/// True if `words` begin with the words of `phrase`. Only the last of them may be followed by
/// punctuation, because a phrase never crosses the end of a sentence.
fn starts_with(words: &[(usize, String)], phrase: &str) -> bool {
    let expected: Vec<&str> = phrase.split(' ').collect();
    if words.len() < expected.len() {
        return false;
    }
    for (index, (wanted, (_, word))) in expected.iter().zip(words).enumerate() {
        let mut word = word.trim_start_matches(['(', '"', '\'', '*']);
        if index + 1 == expected.len() {
            word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'', '*']);
        }
        if word != *wanted {
            return false;
        }
    }
    true
}

/// True if a name in snake case begins with a verb.
fn is_verb(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    match name.split_once('_') {
        Some((first, _)) => VERBS.contains(&first) || VERBS_WITH_OBJECT.contains(&first),
        None => VERBS.contains(&name),
    }
}

struct DialectReader<'a> {
    source: &'a SourceFile,
    counts: &'a mut DialectCounts,
}

impl<'ast> Visit<'ast> for DialectReader<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        let line = local.let_token.span.start().line;
        if let Some(init) = &local.init
            && !self.source.is_test(line)
        {
            let place = self.source.place(line);
            match (pattern_without_type(&local.pat), &*init.expr) {
                (Pat::Ident(name), Expr::Closure(_)) if !is_verb(&name.ident.to_string()) => {
                    self.counts.noun_closures.push(format!("{place}  {}", name.ident));
                }
                (Pat::Tuple(_), Expr::Tuple(_)) => self.counts.tuple_lets.push(place),
                _ => {}
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        let line = expression.span().start().line;
        let on_boolean = expression.arms.iter().any(|arm| is_boolean(&arm.pat));
        if on_boolean && !self.source.is_test(line) {
            self.counts.bool_matches.push(self.source.place(line));
        }
        visit::visit_expr_match(self, expression);
    }
}

fn pattern_without_type(pattern: &Pat) -> &Pat {
    match pattern {
        Pat::Type(typed) => &typed.pat,
        other => other,
    }
}

fn is_boolean(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Lit(literal) if matches!(literal.lit, Lit::Bool(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::CodeCounts;
    use crate::source::parsed;

    fn counts(text: &str) -> DialectCounts {
        CodeCounts::of_file(&parsed("a", text)).dialect
    }

    #[test]
    fn doc_comments_are_questions_by_their_first_word() {
        let found = counts(
            "//! What this module does.\n\n/// Whether it is open.\nstruct A;\n\
             /// The tiles.\n/// Which of them: all.\nstruct B;\n/// Whatever.\nstruct C {\n\
             /// **Which** one.\na: u8 }\n#[cfg(test)]\nmod tests {\n/// What.\nfn f() {}\n}\n",
        );
        assert_eq!(found.docs, 5);
        let places = ["a.rs:1  What this module does.", "a.rs:3  Whether it is open."];
        assert_eq!(found.question_docs[..2], places);
        assert_eq!(found.question_docs.len(), 3);
    }

    #[test]
    fn closures_count_unless_their_name_is_a_verb() {
        let found = counts(
            "fn f() {\n    let ratio = |a, b| a / b;\n    let count = move || 1;\n\
             let count_rows = || 1;\n    let is_open = || true;\n    let mut add = |x| y += x;\n\
             let cell: F = |x| x;\n    let value = call(|x| x);\n}\n\
             #[test]\nfn t() { let ratio = || 1; }\n",
        );
        assert_eq!(found.noun_closures, ["a.rs:2  ratio", "a.rs:3  count", "a.rs:7  cell"]);
    }

    #[test]
    fn tuple_lets_are_tuples_on_both_sides() {
        let found = counts(
            "fn f() {\n    let (a, b) = (1, 2);\n    let (c, d) = pair();\n    let e = (1, 2);\n\
             let (g, h): (u8, u8) = (1, 2);\n    (a, b) = (b, a);\n}\n",
        );
        assert_eq!(found.tuple_lets, ["a.rs:2", "a.rs:5"]);
    }

    #[test]
    fn matches_on_a_boolean_count_and_on_tuples_with_booleans_do_not() {
        let found = counts(
            "fn f() {\n    match x { true => 1, false => 2 };\n    match x { true => 1, _ => 2 };\n\
             match (x, y) { (true, _) => 1, _ => 2 };\n    match x { Some(true) => 1, _ => 2 };\n}\n",
        );
        assert_eq!(found.bool_matches, ["a.rs:2", "a.rs:3"]);
    }

    #[test]
    fn thens_of_booleans_count_and_thens_of_orderings_do_not() {
        let found = counts(
            "fn f() {\n    a.then(|| 1);\n    a.then(move || 1);\n    vec![a.then_some(1)];\n\
             a.cmp(b).then(c.cmp(d));\n    a.cmp(b).then_with(|| c.cmp(d));\n    then(|| 1);\n}\n",
        );
        assert_eq!(found.bool_thens, ["a.rs:2  then", "a.rs:3  then", "a.rs:4  then_some"]);
    }

    #[test]
    fn phrases_count_in_comments_and_strings_also_across_lines() {
        let found = counts(
            "/// This hangs\n/// on that.\nfn f() {\n    // Asked in vain, and\n\
             // told so.\n    g(\"nothing of it\"); h!(\"Of which\");\n}\n",
        );
        let places = [
            "a.rs:1  hangs on",
            "a.rs:4  in vain",
            "a.rs:5  told",
            "a.rs:6  nothing of",
            "a.rs:6  of which",
        ];
        assert_eq!(found.phrases, places);
    }

    #[test]
    fn names_in_code_and_words_of_two_sentences_are_no_phrases() {
        let found = counts(
            "/// It does nothing. Of these, `told` and retold are names.\nfn told() {\n\
             f(\"{told}\");\n}\n#[test]\nfn t() { g(\"told\"); }\n",
        );
        assert_eq!(found.phrases, [""; 0]);
    }

    #[test]
    fn lists_of_verbs_are_sorted_and_disjoint() {
        assert!(VERBS.is_sorted() && VERBS_WITH_OBJECT.is_sorted());
        assert!(VERBS.iter().all(|verb| !VERBS_WITH_OBJECT.contains(verb)));
    }
}
