//! The graph of imports: floors of the window, and circles between modules.
//!
//! Paths are followed to the module that defines what they name, through `use` and `pub use`, so a
//! re-export cannot hide an arrow. Glob imports lead to the module before the star.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::UseTree;
use syn::visit::{self, Visit};

use crate::source::{ModulePath, SourceFile, crate_module, is_own_crate};

/// Folders with a rule, each with the folders that it may import. A folder with a rule may not
/// import a module without one, which could be used to circumvent the table.
const FLOORS: [(&str, &[&str]); 6] = [
    ("shell", &["views", "widgets", "model", "theme", "paint"]),
    ("views", &["widgets", "model", "theme", "paint"]),
    ("widgets", &["theme", "paint"]),
    ("model", &[]),
    ("paint", &["theme"]),
    ("theme", &[]),
];

/// Folders that every crate with floors has.
const NEEDED_FLOORS: [&str; 4] = ["model", "widgets", "views", "shell"];

/// The most `use` names that are followed one after another; they can form circles.
const LONGEST_REEXPORT: usize = 8;

/// A reference to an item of another module.
struct ModuleImport {
    from: ModulePath,
    to: ModulePath,
    place: String,
}

/// All modules and the imports between them, without tests.
pub(crate) struct ImportGraph {
    files: BTreeSet<ModulePath>,
    imports: Vec<ModuleImport>,
}

impl ImportGraph {
    pub(crate) fn of_files(sources: &[SourceFile]) -> Self {
        let iter_product = || sources.iter().filter(|source| source.product_lines() > 0);
        let mut names = NameTable::default();
        let mut mentions = Vec::new();
        for source in iter_product() {
            names.modules.insert(source.module.clone());
            let mut finder = PathFinder { source, here: source.module.clone(), found: Vec::new() };
            finder.visit_file(&source.tree);
            names.modules.extend(finder.found.iter().map(|mention| mention.here.clone()));
            mentions.push((source, finder.found));
        }
        for (source, found) in &mentions {
            for mention in found {
                if let Some(name) = &mention.binds
                    && let Some(target) = names.absolute(source, mention)
                {
                    names.uses.insert((mention.here.clone(), name.clone()), target);
                }
            }
        }
        let mut imports = Vec::new();
        for (source, found) in &mentions {
            for mention in found {
                let Some(target) = names.absolute(source, mention) else { continue };
                let to = names.module_of(&target, LONGEST_REEXPORT);
                let from = mention.here.clone();
                let place = source.place(mention.line);
                imports.push(ModuleImport { from, to, place });
            }
        }
        Self { files: iter_product().map(|source| source.module.clone()).collect(), imports }
    }

    /// True if `room` has the four floors.
    pub(crate) fn has_floors(&self, room: &str) -> bool {
        NEEDED_FLOORS.iter().all(|floor| {
            self.files.iter().any(|file| matches!(&file[..], [a, b, ..] if a == room && b == floor))
        })
    }

    pub(crate) fn has_room(&self, room: &str) -> bool {
        self.files.iter().any(|file| file.first().is_some_and(|first| first == room))
    }

    /// Imports from one top-level module of `room` to another, with the names of both.
    fn arrows(&self, room: &str) -> impl Iterator<Item = (&str, &str, &ModuleImport)> {
        self.imports.iter().filter_map(move |import| {
            let from = folder(room, &import.from)?;
            let to = folder(room, &import.to)?;
            if from != to { Some((from, to, import)) } else { None }
        })
    }

    /// Imports that the table of floors does not allow: one line for each module and folder.
    pub(crate) fn arrows_up(&self, room: &str) -> Vec<String> {
        let mut found = BTreeMap::new();
        for (from, to, import) in self.arrows(room) {
            let rule = FLOORS.iter().find(|(name, _)| *name == from);
            if rule.is_some_and(|(_, allowed)| !allowed.contains(&to)) {
                found
                    .entry((&import.from, to))
                    .or_insert_with(|| format!("{}  {from} -> {to}", import.place));
            }
        }
        found.into_values().collect()
    }

    /// The largest group of files below these modules that reach each other, by name.
    pub(crate) fn largest_file_circle(&self, below: &[&str]) -> Vec<String> {
        let is_below = |module: &ModulePath| {
            module.len() >= below.len() && below.iter().zip(module).all(|(name, own)| name == own)
        };
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for import in self.imports.iter().filter(|of| is_below(&of.from) && is_below(&of.to)) {
            let from = self.file_of(&import.from);
            let to = self.file_of(&import.to);
            // A parent names its children, and they use its items: both count as one.
            let is_family = from.starts_with(&to) || to.starts_with(&from);
            if from != to && !is_family {
                arrows.entry(from.join("::")).or_default().insert(to.join("::"));
            }
        }
        let mut shown: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in &arrows {
            shown.insert(from, to.iter().map(String::as_str).collect());
        }
        let largest = components(&shown).into_iter().max_by_key(Vec::len).unwrap_or_default();
        largest.into_iter().map(str::to_owned).collect()
    }

    /// The file that a module is in.
    fn file_of(&self, module: &ModulePath) -> ModulePath {
        let mut file = module.clone();
        while !file.is_empty() && !self.files.contains(&file) {
            file.pop();
        }
        file
    }

    /// Groups of top-level modules of `room` that import each other, the largest first.
    pub(crate) fn circles(&self, room: &str) -> Vec<Vec<&str>> {
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to, _) in self.arrows(room) {
            arrows.entry(from).or_default().insert(to);
        }
        components(&arrows)
    }

    /// The imports that close a circle, one line for each pair of modules.
    pub(crate) fn arrows_in(&self, room: &str, circle: &[&str]) -> Vec<String> {
        let mut found: BTreeMap<(&str, &str), (usize, &str)> = BTreeMap::new();
        for (from, to, import) in self.arrows(room) {
            if circle.contains(&from) && circle.contains(&to) {
                found.entry((from, to)).or_insert((0, &import.place)).0 += 1;
            }
        }
        let line =
            |((from, to), (count, first))| format!("{from} -> {to}  x{count}, as in {first}");
        found.into_iter().map(line).collect()
    }
}

/// The top-level module of `room` that contains a module; none for the root of `room`.
fn folder<'a>(room: &str, module: &'a [String]) -> Option<&'a str> {
    match module {
        [first, second, ..] if first == room => Some(second),
        _ => None,
    }
}

/// Strongly connected components of more than one node, the largest first. These graphs have some
/// dozen nodes, so computing reachability from each of them is fast enough, and simple.
fn components<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut left: BTreeSet<&str> = arrows.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(node) = left.pop_first() {
        let from_node = reachable(arrows, node);
        let mut circle = vec![node];
        left.retain(|other| {
            let member = from_node.contains(other) && reachable(arrows, other).contains(node);
            circle.extend(member.then_some(*other));
            !member
        });
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// All nodes that can be reached along at least one arrow.
fn reachable<'a>(arrows: &BTreeMap<&str, BTreeSet<&'a str>>, start: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        let next = arrows.get(node).into_iter().flatten();
        open.extend(next.filter(|&&next| seen.insert(next)));
    }
    seen
}

/// A path as written.
struct PathMention {
    /// The module that contains it, which may be inside a file.
    here: ModulePath,
    parts: Vec<String>,
    /// The name that a `use` binds.
    binds: Option<String>,
    line: usize,
}

/// The meanings of names.
#[derive(Default)]
struct NameTable {
    modules: BTreeSet<ModulePath>,
    uses: BTreeMap<(ModulePath, String), ModulePath>,
}

impl NameTable {
    /// The path from the root of the workspace; none for external crates and local names.
    fn absolute(&self, source: &SourceFile, mention: &PathMention) -> Option<ModulePath> {
        let (first, rest) = mention.parts.split_first()?;
        let mut absolute = match first.as_str() {
            "crate" => source.crate_root.clone(),
            "self" => mention.here.clone(),
            "super" => mention.here.split_last()?.1.to_vec(),
            name if is_own_crate(name) => crate_module(name).into_iter().collect(),
            name => {
                let child = with(&mention.here, name);
                self.modules.contains(&child).then_some(child)?
            }
        };
        for part in rest {
            if part == "super" {
                absolute.pop()?;
            } else {
                absolute.push(part.clone());
            }
        }
        Some(absolute)
    }

    /// The module that defines the item of an absolute path.
    fn module_of(&self, path: &[String], follow: usize) -> ModulePath {
        let mut module = ModulePath::new();
        for (index, part) in path.iter().enumerate() {
            let child = with(&module, part);
            if self.has_module(&child) {
                module = child;
            } else if let Some(target) = self.uses.get(&(module.clone(), part.clone()))
                && follow > 0
            {
                let rest = path.get(index + 1..).unwrap_or_default();
                return self.module_of(&[target, rest].concat(), follow - 1);
            } else {
                break;
            }
        }
        module
    }

    /// True if a module exists, even if only as a directory of modules, such as a crate without
    /// files.
    fn has_module(&self, module: &ModulePath) -> bool {
        let next = self.modules.range(module.clone()..).next();
        next.is_some_and(|next| next.starts_with(module))
    }
}

fn with(module: &[String], name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

struct PathFinder<'a> {
    source: &'a SourceFile,
    here: ModulePath,
    found: Vec<PathMention>,
}

impl PathFinder<'_> {
    fn add(&mut self, parts: Vec<String>, binds: Option<String>, line: usize) {
        // A single name is local, or comes from a `use` that is counted itself.
        if (parts.len() > 1 || binds.is_some()) && !self.source.is_test(line) {
            self.found.push(PathMention { here: self.here.clone(), parts, binds, line });
        }
    }

    fn use_tree(&mut self, tree: &UseTree, before: &[String]) {
        match tree {
            UseTree::Path(path) => {
                self.use_tree(&path.tree, &with(before, &path.ident.to_string()));
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, before);
                }
            }
            UseTree::Glob(star) => {
                let line = star.star_token.spans[0].start().line;
                self.add(before.to_vec(), None, line);
            }
            UseTree::Name(name) => self.use_name(&name.ident, &name.ident, before),
            UseTree::Rename(rename) => self.use_name(&rename.ident, &rename.rename, before),
        }
    }

    fn use_name(&mut self, name: &syn::Ident, binds: &syn::Ident, before: &[String]) {
        let line = name.span().start().line;
        if name == "self" {
            let bound = if binds == "self" { before.last().cloned() } else { None };
            self.add(before.to_vec(), bound.or_else(|| Some(binds.to_string())), line);
        } else {
            self.add(with(before, &name.to_string()), Some(binds.to_string()), line);
        }
    }

    /// Paths in the arguments of a macro, which the tree does not parse.
    fn tokens(&mut self, stream: &TokenStream) {
        let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut parts: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in &tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add(std::mem::take(&mut parts), None, line);
                    }
                    line = name.span().start().line;
                    parts.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !parts.is_empty() => colons += 1,
                _ => {
                    self.add(std::mem::take(&mut parts), None, line);
                    colons = 0;
                }
            }
            if let TokenTree::Group(group) = token {
                self.tokens(&group.stream());
            }
        }
        self.add(parts, None, line);
    }
}

impl<'ast> Visit<'ast> for PathFinder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.here.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.here.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.use_tree(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            let line = first.ident.span().start().line;
            let parts = path.segments.iter().map(|part| part.ident.to_string()).collect();
            self.add(parts, None, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(&call.tokens);
        visit::visit_macro(self, call);
    }

    /// `pub(super)` and `pub(in crate::x)` import nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parsed;

    fn graph(files: &[(&str, &str)]) -> ImportGraph {
        let files: Vec<_> = files.iter().map(|(module, text)| parsed(module, text)).collect();
        ImportGraph::of_files(&files)
    }

    fn floors(module: &'static str, text: &'static str) -> Vec<String> {
        let mut files = vec![
            ("gui::model", "pub struct Tab;"),
            ("gui::widgets", "pub struct Axis;"),
            ("gui::views", "pub struct Memory;"),
            ("gui::shell", "pub struct App;"),
            ("gui::theme", "pub struct Palette;"),
            ("gui::worker", "pub struct Slot;"),
            ("gui", "pub use shell::App;\npub struct Root;"),
        ];
        files.retain(|(name, _)| *name != module);
        files.push((module, text));
        let graph = graph(&files);
        assert!(graph.has_floors("gui"));
        graph.arrows_up("gui")
    }

    #[test]
    fn an_arrow_up_is_found_in_any_notation() {
        for text in [
            "use crate::gui::shell::App;",
            "use super::shell::App as A;",
            "use super::{App, theme::Palette};",
            "fn f() { super::shell::run(); }",
            "fn f() { format!(\"{}\", super::shell::NAME); }",
            "mod inner { use super::super::shell; }",
            "use tilescope::gui::shell::*;",
        ] {
            let found = floors("gui::views", text);
            assert_eq!(found, ["gui/views.rs:1  views -> shell"], "{text}");
        }
    }

    #[test]
    fn arrows_down_inside_and_in_tests_are_allowed() {
        for text in [
            "use super::model::Tab; use crate::gui::widgets::Axis; use super::theme;",
            "use super::Root; pub(in crate::gui::shell) struct S;",
            "mod shell { pub struct S; }\nuse self::shell::S;",
            "/// [`super::shell::App`]\nstruct S;",
            "fn f() {}\n#[cfg(test)]\nmod tests { use super::super::shell::App; }",
        ] {
            assert_eq!(floors("gui::views", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn widgets_import_no_model_and_no_floor_imports_a_folder_without_rule() {
        let found = floors("gui::widgets", "use super::model::Tab;\nuse super::model;\n");
        assert_eq!(found, ["gui/widgets.rs:1  widgets -> model"]);
        let found = floors("gui::views", "use super::worker::Slot;");
        assert_eq!(found, ["gui/views.rs:1  views -> worker"]);
    }

    #[test]
    fn circles_are_groups_that_reach_each_other() {
        let graph = graph(&[
            ("sim::ops", "use super::lower::Work;"),
            ("sim::lower", "use super::planner;"),
            ("sim::planner::plan", "fn f() -> crate::sim::ops::Op { x }"),
            ("sim::planner", "mod plan;"),
            ("sim::run", "use super::ops::Op;"),
            ("sim", "mod ops; use ops::Op;"),
        ]);
        assert_eq!(graph.circles("sim"), [["lower", "ops", "planner"]]);
        assert_eq!(graph.circles("gui"), [[""; 0]; 0]);
        let arrows = graph.arrows_in("sim", &graph.circles("sim")[0]);
        assert_eq!(arrows[0], "lower -> planner  x1, as in sim/lower.rs:1");
        assert_eq!(arrows.len(), 3, "run -> ops is outside the circle: {arrows:?}");
    }

    #[test]
    fn a_chain_is_no_circle_and_a_test_closes_none() {
        let graph = graph(&[
            ("sim::ops", "use super::lower::Work;"),
            ("sim::lower", "#[cfg(test)]\nmod tests { use super::super::ops::Op; }"),
        ]);
        assert_eq!(graph.circles("sim"), [[""; 0]; 0]);
    }
}
