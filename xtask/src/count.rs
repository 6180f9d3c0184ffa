//! Counts file by file: comments, doc comments, assertions, errors that are texts, lengths of
//! functions, public items without docs.
//!
//! Macro calls are opaque to a syntax tree, and comments are in no tree at all. Assertions, doc
//! comments and comments are therefore read from the tokens and the gaps between them.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{GenericArgument, ImplItem, Item, PathArguments, Type, Visibility};

use crate::dialect::DialectCounts;
use crate::source::{ItemHead, SourceFile};

/// Macros that state an invariant.
const ASSERTIONS: [&str; 6] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];

/// The number of words up to which a doc comment hardly adds to the name below it.
const SHORT_DOC_WORDS: usize = 3;

/// Figures of the product code of one file, or the sum over several.
#[derive(Clone, Default)]
pub(crate) struct CodeCounts {
    pub(crate) files: usize,
    pub(crate) lines: usize,
    pub(crate) test_lines: usize,
    pub(crate) comments: usize,
    pub(crate) doc_blocks: usize,
    /// Place and text of doc comments of three words or fewer.
    pub(crate) short_docs: Vec<String>,
    pub(crate) assertions: usize,
    pub(crate) unwraps: usize,
    /// Places of `Result<_, String>`.
    pub(crate) string_results: Vec<String>,
    pub(crate) function_lengths: Vec<usize>,
    pub(crate) public_items: usize,
    /// Place and name of public items without a doc comment.
    pub(crate) undocumented: Vec<String>,
    pub(crate) dialect: DialectCounts,
}

impl CodeCounts {
    pub(crate) fn of_file(source: &SourceFile) -> Self {
        let mut counts = Self {
            files: 1,
            lines: source.product_lines(),
            test_lines: source.test_lines(),
            ..Self::default()
        };
        let mut reader = TokenReader { source, counts: &mut counts, read_to: 0 };
        reader.read(&source.tokens);
        reader.gap_before(source.text.len());
        TreeReader { source, counts: &mut counts }.visit_file(&source.tree);
        counts.dialect.read_tree(source);
        counts
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.test_lines += other.test_lines;
        self.comments += other.comments;
        self.doc_blocks += other.doc_blocks;
        self.short_docs.extend(other.short_docs);
        self.assertions += other.assertions;
        self.unwraps += other.unwraps;
        self.string_results.extend(other.string_results);
        self.function_lengths.extend(other.function_lengths);
        self.public_items += other.public_items;
        self.undocumented.extend(other.undocumented);
        self.dialect.add(other.dialect);
    }
}

/// Reads tokens in the order of the text.
struct TokenReader<'a> {
    source: &'a SourceFile,
    counts: &'a mut CodeCounts,
    /// Bytes of the text that tokens and gaps have covered.
    read_to: usize,
}

impl TokenReader<'_> {
    fn read(&mut self, stream: &TokenStream) {
        let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut doc = DocBlock::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at..];
            if let Some(comment) = doc_comment(rest) {
                if comment.is_inner != doc.is_inner {
                    self.end_doc_block(std::mem::take(&mut doc));
                }
                doc.line.get_or_insert(token.span().start().line);
                doc.is_inner = comment.is_inner;
                doc.text.push_str(&comment.text);
                doc.text.push('\n');
                // All tokens of a doc comment have the whole comment as their place.
                self.token(token.span().byte_range());
                at += comment.tokens;
                continue;
            }
            self.end_doc_block(std::mem::take(&mut doc));
            let line = token.span().start().line;
            if !self.source.is_test(line) {
                self.counts.assertions += usize::from(is_assertion(rest));
                self.counts.unwraps += usize::from(is_unwrap(rest));
                self.counts.dialect.read_then(self.source, rest);
                if let Some(text) = string_literal(token) {
                    // An escaped newline in the text is none in the file.
                    let numbers = (line..).map(|number| number.min(token.span().end().line));
                    self.counts.dialect.read_prose(self.source, numbers.zip(text.lines()));
                }
            }
            if let TokenTree::Group(group) = token {
                self.token(group.span_open().byte_range());
                self.read(&group.stream());
                self.token(group.span_close().byte_range());
            } else {
                self.token(token.span().byte_range());
            }
            at += 1;
        }
        self.end_doc_block(doc);
    }

    fn token(&mut self, bytes: Range<usize>) {
        self.gap_before(bytes.start);
        self.read_to = self.read_to.max(bytes.end);
    }

    /// Counts comments between the last token and `end`, where the only other content is space.
    fn gap_before(&mut self, end: usize) {
        let Some(gap) = self.source.text.get(self.read_to..end) else { return };
        if !gap.contains("//") {
            return;
        }
        let first_line = self.source.text[..self.read_to].matches('\n').count() + 1;
        let mut prose = Vec::new();
        let mut depth = 0_usize;
        for (line, text) in (first_line..).zip(gap.split('\n')) {
            // A block comment may hold what looks like a line comment.
            let opened = text.matches("/*").count();
            let closed = text.matches("*/").count();
            let words = if depth == 0 { text.trim_start().strip_prefix("//") } else { None };
            if let Some(words) = words {
                if words.contains(char::is_alphanumeric) && !self.source.is_test(line) {
                    self.counts.comments += 1;
                    prose.push((line, words));
                }
            } else {
                depth = (depth + opened).saturating_sub(closed);
            }
        }
        self.counts.dialect.read_prose(self.source, prose.into_iter());
    }

    fn end_doc_block(&mut self, block: DocBlock) {
        let Some(line) = block.line.filter(|&line| !self.source.is_test(line)) else { return };
        self.counts.dialect.read_doc(self.source, line, &block.text);
        if block.is_inner {
            return;
        }
        self.counts.doc_blocks += 1;
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        if block.text.split_whitespace().filter(is_word).count() <= SHORT_DOC_WORDS {
            let place = self.source.place(line);
            self.counts.short_docs.push(format!("{place}  {}", block.text.trim()));
        }
    }
}

/// Consecutive doc comment lines.
#[derive(Default)]
struct DocBlock {
    line: Option<usize>,
    /// True for `//!`.
    is_inner: bool,
    text: String,
}

/// One line of a doc comment, or a block `/** */`.
pub(crate) struct DocComment {
    is_inner: bool,
    pub(crate) text: String,
    /// The number of tokens that it is to a lexer.
    pub(crate) tokens: usize,
}

/// The doc comment at the head of `tokens`: `///` is `#[doc = "…"]` to a lexer, `//!` is
/// `#![doc = "…"]`.
pub(crate) fn doc_comment(tokens: &[TokenTree]) -> Option<DocComment> {
    let (hash, group, is_inner) = match tokens {
        [TokenTree::Punct(hash), TokenTree::Group(group), ..] => (hash, group, false),
        [TokenTree::Punct(hash), TokenTree::Punct(_), TokenTree::Group(group), ..] => {
            (hash, group, true)
        }
        _ => return None,
    };
    if hash.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let inside: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(text)] = &inside[..]
    else {
        return None;
    };
    let from_comment = hash.span().byte_range() == group.span().byte_range();
    if name != "doc" || !from_comment {
        return None;
    }
    let text = syn::parse_str::<syn::LitStr>(&text.to_string()).ok()?.value();
    Some(DocComment { is_inner, text, tokens: if is_inner { 3 } else { 2 } })
}

/// The value of a string literal; none for other tokens.
pub(crate) fn string_literal(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    Some(syn::parse_str::<syn::LitStr>(&literal.to_string()).ok()?.value())
}

pub(crate) fn is_assertion(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(_), ..] = tokens else {
        return false;
    };
    mark.as_char() == '!' && ASSERTIONS.iter().any(|assertion| name == assertion)
}

pub(crate) fn is_unwrap(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(group), ..] = tokens
    else {
        return false;
    };
    let called = group.delimiter() == Delimiter::Parenthesis;
    dot.as_char() == '.' && called && (name == "unwrap" || name == "expect")
}

/// Counts items that are visible in the syntax tree.
struct TreeReader<'a> {
    source: &'a SourceFile,
    counts: &'a mut CodeCounts,
}

impl TreeReader<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let last = body.span().end().line;
        if !self.source.is_test(first) {
            self.counts.function_lengths.push(last + 1 - first);
        }
    }

    fn public_item(&mut self, head: &ItemHead<'_>) {
        let Some((Visibility::Public(_), ident)) = head.named else { return };
        let line = ident.span().start().line;
        if !self.source.is_test(line) {
            self.counts.public_items += 1;
            // `#[doc(hidden)]` counts as docs.
            if !head.attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
                self.counts.undocumented.push(format!("{}  {ident}", self.source.place(line)));
            }
        }
    }
}

impl<'ast> Visit<'ast> for TreeReader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        self.public_item(&ItemHead::of_item(item));
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        self.public_item(&ItemHead::of_impl_item(item));
        visit::visit_impl_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        for segment in &path.segments {
            let line = segment.ident.span().start().line;
            let fails_with_text = segment.ident == "Result" && second_is_string(&segment.arguments);
            if fails_with_text && !self.source.is_test(line) {
                self.counts.string_results.push(self.source.place(line));
            }
        }
        visit::visit_path(self, path);
    }
}

/// True if the second type in angle brackets is `String`.
fn second_is_string(arguments: &PathArguments) -> bool {
    let PathArguments::AngleBracketed(arguments) = arguments else { return false };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(Type::Path(inner)) => Some(inner.path.segments.last()),
        GenericArgument::Type(_) => Some(None),
        _ => None,
    });
    types.nth(1).flatten().is_some_and(|last| last.ident == "String")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parsed;

    fn counts(text: &str) -> CodeCounts {
        CodeCounts::of_file(&parsed("a", text))
    }

    #[test]
    fn comments_count_alone_and_after_code() {
        let text = "// why\nfn f() { // too\n    // and this\n}\n// and the last\n";
        assert_eq!(counts(text).comments, 4);
    }

    #[test]
    fn docs_texts_rules_and_comments_of_tests_are_no_comments() {
        let text = "//! docs\n/// docs\nfn f() -> &'static str { \"// text\" }\n// ------\n\
                    /* // block\n// still */\nconst R: &str = r#\"\n// text\n\"#;\n\
                    #[cfg(test)]\nmod tests {\n    // why\n}\n";
        assert_eq!(counts(text).comments, 0);
    }

    #[test]
    fn doc_comments_of_three_words_are_short_and_of_four_are_not() {
        let found = counts(
            "/// Of three words.\nstruct A;\n/// Of four words - here.\nstruct B;\n\
             /// Two words\n/// and two more.\nfn f() {}\n",
        );
        assert_eq!(found.doc_blocks, 3);
        assert_eq!(found.short_docs, ["a.rs:1  Of three words."]);
    }

    #[test]
    fn doc_comments_count_inside_macros_and_not_in_tests_or_as_module_docs() {
        let found = counts(
            "//! Module.\nlist! {\n    /// Short.\n    a,\n}\n\
             #[cfg(test)]\nmod tests {\n    /// Short.\n    fn f() {}\n}\n",
        );
        assert_eq!((found.doc_blocks, found.short_docs.len()), (1, 1));
    }

    #[test]
    fn assertions_count_in_product_code_only() {
        let text = "fn f() { assert!(x); vec![{ debug_assert_eq!(a, b); 1 }]; }\n\
                    fn g() { assert(x); my_assert!(x); let y = assert != 3; }\n\
                    #[cfg(test)]\nmod tests { fn t() { assert!(x); } }\n";
        assert_eq!(counts(text).assertions, 2);
    }

    #[test]
    fn unwraps_are_calls() {
        let found = counts("fn f() { a.unwrap(); b.expect(\"x\"); c.unwrap_or(1); d.expect; }");
        assert_eq!(found.unwraps, 2);
    }

    #[test]
    fn results_that_fail_with_a_text_count_anywhere() {
        let text = "fn f() -> Result<u8, String> { Result::<u8, String>::Ok(1) }\n\
                    type A = std::result::Result<(), std::string::String>;\n";
        assert_eq!(counts(text).string_results.len(), 3);
        let near = "fn f() -> Result<String, Error> { g::<u8, String>() }\n\
                    fn h() -> Result<u8, &str> { todo() }\nfn i() -> io::Result<String> { x }\n";
        assert_eq!(counts(near).string_results.len(), 0);
    }

    #[test]
    fn public_items_need_docs_and_others_do_not() {
        let found = counts(
            "pub struct A { pub field: u8 }\n/// Said.\npub fn f() {}\npub(crate) fn g() {}\n\
             impl A { pub fn h() {} fn i() {} }\n#[doc(hidden)]\npub const C: u8 = 1;\n\
             pub mod m {}\npub use x::Y;\n",
        );
        assert_eq!(found.public_items, 4);
        assert_eq!(found.undocumented, ["a.rs:1  A", "a.rs:5  h"]);
    }

    #[test]
    fn functions_are_as_long_as_from_signature_to_closing_brace() {
        let found = counts("/// Docs.\nfn f() {\n    g();\n}\ntrait T { fn a(); fn b() {} }\n");
        assert_eq!(found.function_lengths, [3, 1]);
    }
}
