//! `cargo xtask style --sample SEED`: strings, doc comments, pages and functions drawn at random,
//! to be read aloud.
//!
//! Figures show how often a habit occurs, not how a text sounds. A sample covers the whole
//! project, and a reader who knows the seed can draw the same one again.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::count::{doc_comment, is_assertion, is_unwrap, string_literal};
use crate::source::{SourceFile, SourceTree};

const STRINGS: usize = 60;
const DOC_COMMENTS: usize = 30;
const PAGES: usize = 10;
const FUNCTIONS: usize = 20;

/// Folders of pages that users read, relative to the workspace.
const PAGE_FOLDERS: [&str; 2] = ["docs", "assets/help"];

/// The number of words from which a string literal counts as a text for users.
const TEXT_WORDS: usize = 3;

/// First words of string literals in SQL, or of parts of a statement.
const SQL_WORDS: [&str; 10] =
    ["CREATE", "DELETE", "FROM", "INSERT", "ORDER", "PRAGMA", "SELECT", "UPDATE", "WHERE", "WITH"];

/// Attributes whose strings only developers read.
const SILENT_ATTRIBUTES: [&str; 5] = ["allow", "cfg", "cfg_attr", "deprecated", "expect"];

/// Macros whose strings users see only if the program has a bug, besides assertions.
const SILENT_MACROS: [&str; 4] = ["panic", "todo", "unimplemented", "unreachable"];

/// A text with its place, `path:line`.
#[derive(Debug, PartialEq)]
struct Passage {
    place: String,
    text: String,
}

/// The passages of some files that a sample is drawn from, in the order of the files.
#[derive(Default)]
struct Passages {
    strings: Vec<Passage>,
    doc_comments: Vec<Passage>,
    functions: Vec<Passage>,
}

/// Returns the sample for a seed. The same seed gives the same sample of the same files.
pub(crate) fn sample(tree: &SourceTree, root: &Path, seed: u64) -> Result<String, Box<dyn Error>> {
    let mut passages = Passages::default();
    for file in &tree.files {
        Reader { source: file, passages: &mut passages }.read(&file.tokens);
        FunctionReader { source: file, passages: &mut passages }.visit_file(&file.tree);
    }
    let mut out = String::new();
    section(&mut out, "Strings", draw(passages.strings, STRINGS, seed))?;
    section(&mut out, "Doc comments", draw(passages.doc_comments, DOC_COMMENTS, seed))?;
    section(&mut out, "Functions", draw(passages.functions, FUNCTIONS, seed))?;
    writeln!(out, "# Pages\n")?;
    for page in draw(pages(root)?, PAGES, seed) {
        writeln!(out, "{}", page.strip_prefix(root).unwrap_or(&page).display())?;
    }
    Ok(out)
}

fn section(out: &mut String, title: &str, passages: Vec<Passage>) -> std::fmt::Result {
    writeln!(out, "# {title}\n")?;
    for Passage { place, text } in passages {
        writeln!(out, "{place}\n{text}\n")?;
    }
    Ok(())
}

/// Draws `count` items, or all if there are fewer. They keep their order.
///
/// Each call starts from the seed, so that a new string changes no draw of functions.
fn draw<T>(items: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut random = SplitMix(seed);
    let mut left = items.len();
    let mut wanted = count.min(left);
    let mut drawn = Vec::with_capacity(wanted);
    for item in items {
        // Selection sampling: `wanted` of the `left` items are still to be drawn.
        if random.below(left) < wanted {
            drawn.push(item);
            wanted -= 1;
        }
        left -= 1;
    }
    drawn
}

/// The generator SplitMix64 by Steele, Lea and Flood.
struct SplitMix(u64);

impl SplitMix {
    /// A number from 0 to `end - 1`. The bias of the remainder is negligible for a list of texts.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed % end as u64) as usize
    }
}

/// Returns the Markdown files below [`PAGE_FOLDERS`], sorted.
fn pages(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = PAGE_FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Collects strings and doc comments of product code.
struct Reader<'a> {
    source: &'a SourceFile,
    passages: &'a mut Passages,
}

impl Reader<'_> {
    fn read(&mut self, stream: &TokenStream) {
        let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at..];
            let line = token.span().start().line;
            if doc_comment(rest).is_some() {
                at += self.read_doc(rest, line);
            } else if is_silent(rest) {
                // The name, a mark and the group after it.
                at += rest.iter().take_while(|token| !matches!(token, TokenTree::Group(_))).count();
                at += 1;
            } else {
                if let TokenTree::Group(group) = token {
                    self.read(&group.stream());
                } else if let Some(text) = string_literal(token).filter(|text| is_for_users(text)) {
                    push(&mut self.passages.strings, self.source, line, text);
                }
                at += 1;
            }
        }
    }

    /// Reads the lines of one doc comment and returns its number of tokens.
    fn read_doc(&mut self, tokens: &[TokenTree], line: usize) -> usize {
        let mut text = String::new();
        let mut read = 0;
        while let Some(comment) = doc_comment(&tokens[read..]) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(comment.text.trim());
            read += comment.tokens;
        }
        push(&mut self.passages.doc_comments, self.source, line, text);
        read
    }
}

fn push(passages: &mut Vec<Passage>, source: &SourceFile, line: usize, text: String) {
    if !source.is_test(line) {
        passages.push(Passage { place: source.place(line), text });
    }
}

/// True if `tokens` begin with an attribute, a macro call or an `expect` whose texts users do not
/// see.
fn is_silent(tokens: &[TokenTree]) -> bool {
    if is_assertion(tokens) || is_unwrap(tokens) {
        return true;
    }
    match tokens {
        [TokenTree::Punct(hash), TokenTree::Group(group), ..] => {
            hash.as_char() == '#'
                && group.delimiter() == Delimiter::Bracket
                && begins_with(&group.stream(), &SILENT_ATTRIBUTES)
        }
        [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(_), ..] => {
            mark.as_char() == '!' && SILENT_MACROS.iter().any(|silent| name == silent)
        }
        _ => false,
    }
}

fn begins_with(stream: &TokenStream, names: &[&str]) -> bool {
    match stream.clone().into_iter().next() {
        Some(TokenTree::Ident(first)) => names.iter().any(|name| first == name),
        _ => false,
    }
}

/// True if a string literal has several words and is not SQL.
fn is_for_users(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    let first = text.split_whitespace().next().unwrap_or_default();
    words.count() >= TEXT_WORDS && !SQL_WORDS.contains(&first)
}

/// Collects functions of product code with their bodies.
struct FunctionReader<'a> {
    source: &'a SourceFile,
    passages: &'a mut Passages,
}

impl FunctionReader<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let last = body.span().end().line;
        let lines = self.source.text.lines().skip(first - 1).take(last + 1 - first);
        let text = lines.collect::<Vec<_>>().join("\n");
        push(&mut self.passages.functions, self.source, first, text);
    }
}

impl<'ast> Visit<'ast> for FunctionReader<'_> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parsed;

    fn passages(text: &str) -> Passages {
        let source = parsed("a", text);
        let mut passages = Passages::default();
        Reader { source: &source, passages: &mut passages }.read(&source.tokens);
        FunctionReader { source: &source, passages: &mut passages }.visit_file(&source.tree);
        passages
    }

    fn places(passages: &[Passage]) -> Vec<&str> {
        passages.iter().map(|passage| passage.place.as_str()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_items_and_another_seed_others() {
        let numbers: Vec<usize> = (0..1000).collect();
        let drawn = draw(numbers.clone(), 20, 3);
        assert_eq!(drawn.len(), 20);
        assert!(drawn.is_sorted());
        assert_eq!(drawn, draw(numbers.clone(), 20, 3));
        assert_ne!(drawn, draw(numbers, 20, 4));
        assert_eq!(draw(vec![1, 2, 3], 20, 3), [1, 2, 3]);
    }

    #[test]
    fn every_item_is_drawn_by_some_seed() {
        let drawn = (0..100).flat_map(|seed| draw((0..10).collect::<Vec<usize>>(), 2, seed));
        let mut counts = [0; 10];
        for number in drawn {
            counts[number] += 1;
        }
        assert!(counts.iter().all(|&count| count > 5), "{counts:?}");
    }

    #[test]
    fn strings_are_texts_that_users_see() {
        let found = passages(
            "fn f() {\n    g(\"no such file\");\n    h!(\"{} of many tiles\", 1);\n    g(\"short\");\n\
             assert!(x, \"one two three\");\n    x.expect(\"one two three\");\n\
             panic!(\"one two three\");\n    g(\"SELECT a FROM steps\"); g(\"ORDER BY id DESC\");\n}\n\
             #[error(\"no such table\")]\n#[expect(dead_code, reason = \"for one test\")]\nstruct A;\n\
             #[cfg(test)]\nmod tests { fn t() { g(\"one two three\"); } }\n",
        );
        assert_eq!(places(&found.strings), ["a.rs:2", "a.rs:3", "a.rs:10"]);
        assert_eq!(found.strings[0].text, "no such file");
    }

    #[test]
    fn doc_comments_and_functions_have_their_whole_text() {
        let found = passages(
            "/// First line\n/// and second.\nfn f() {\n    1\n}\n\
             #[test]\n/// A test.\nfn t() {}\ntrait T {\n    fn a();\n    fn b() {}\n}\n",
        );
        assert_eq!(places(&found.doc_comments), ["a.rs:1"]);
        assert_eq!(found.doc_comments[0].text, "First line\nand second.");
        assert_eq!(places(&found.functions), ["a.rs:3", "a.rs:11"]);
        assert_eq!(found.functions[0].text, "fn f() {\n    1\n}");
    }

    #[test]
    fn a_sample_names_pages_of_the_workspace() {
        let root = crate::workspace_root().unwrap();
        let empty = SourceTree::default();
        let text = sample(&empty, &root, 1).unwrap();
        let (_, pages) = text.split_once("# Pages\n\n").unwrap();
        assert_eq!(pages.lines().count(), PAGES);
        assert!(pages.lines().all(|page| root.join(page).is_file()), "{pages}");
    }
}
