//! Source files: parsed, placed in one module tree, with tests marked.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItem, Item, Meta, Token, Visibility};

/// The prefix of crate names: `tilescope-sim` in `Cargo.toml` and `tilescope_sim` in paths. Without
/// the prefix both are the folder `sim` of the layout before the workspace, so that one list of
/// places covers both layouts.
const CRATE_PREFIX: &str = "tilescope";

/// Crates under `crates/` that only tests depend on, by their name without the prefix: all their
/// lines are test lines.
const TEST_CRATES: [&str; 4] = ["benches", "fixtures", "test_support", "test_tiers"];

/// A path of module names, from the root of the workspace down.
pub(crate) type ModulePath = Vec<String>;

/// One `.rs` file.
pub(crate) struct SourceFile {
    /// Its path, as given on the command line or relative to the workspace root.
    pub(crate) path: PathBuf,
    /// The module whose body it is: `sim::poplin` for `crates/tilescope-sim/src/poplin/mod.rs`.
    pub(crate) module: ModulePath,
    /// The meaning of `crate::` in it: empty for the root package, `sim` for `tilescope-sim`.
    pub(crate) crate_root: ModulePath,
    pub(crate) text: String,
    pub(crate) tokens: TokenStream,
    pub(crate) tree: syn::File,
    /// For each line, true if it belongs to a test.
    test_lines: Vec<bool>,
    /// Modules of other files that are declared here as `#[cfg(test)] mod name;`.
    test_modules: Vec<ModulePath>,
}

impl SourceFile {
    /// Parses a text as the body of `module`.
    pub(crate) fn parse(
        path: PathBuf,
        crate_root: ModulePath,
        module: ModulePath,
        text: String,
    ) -> Result<Self, Box<dyn Error>> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let tokens: TokenStream = text.parse()?;
        let tree: syn::File = syn::parse2(tokens.clone())?;
        let mut finder = TestFinder {
            here: module.clone(),
            lines: vec![implies_test(&tree.attrs); text.lines().count()],
            modules: Vec::new(),
        };
        finder.visit_file(&tree);
        let TestFinder { lines: test_lines, modules: test_modules, .. } = finder;
        Ok(Self { path, module, crate_root, text, tokens, tree, test_lines, test_modules })
    }

    /// True if a line, counted from 1, belongs to a test.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        line.checked_sub(1).and_then(|index| self.test_lines.get(index)).is_some_and(|&test| test)
    }

    pub(crate) fn test_lines(&self) -> usize {
        self.test_lines.iter().filter(|&&test| test).count()
    }

    pub(crate) fn product_lines(&self) -> usize {
        self.test_lines.len() - self.test_lines()
    }

    /// `path:line`, as editors and terminals open it.
    pub(crate) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// True if it lies in a folder, or is the file of that name, given as `sim/planner`.
    pub(crate) fn is_below(&self, folder: &str) -> bool {
        let mut module = self.module.iter();
        folder.split('/').all(|part| module.next().is_some_and(|name| name == part))
    }
}

/// All files of some folders, and those that could not be read.
#[derive(Default)]
pub(crate) struct SourceTree {
    pub(crate) files: Vec<SourceFile>,
    /// `path: why`. A single unreadable file makes `--check` fail.
    pub(crate) unreadable: Vec<String>,
}

impl SourceTree {
    /// Reads every `.rs` file below `folders`; paths are shown relative to `shown_from`.
    pub(crate) fn read(folders: &[PathBuf], shown_from: &Path) -> Result<Self, Box<dyn Error>> {
        let mut tree = Self::default();
        for folder in folders {
            let folder = fs::canonicalize(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            let (source_root, crate_root) = crate_of(&folder);
            for path in rust_files(&folder)? {
                let below = path.strip_prefix(&source_root).unwrap_or(&path);
                let module = module_of(&crate_root, below);
                let shown = path.strip_prefix(shown_from).unwrap_or(&path).to_path_buf();
                let parsed = fs::read_to_string(&path).map_err(Into::into).and_then(|text| {
                    SourceFile::parse(shown.clone(), crate_root.clone(), module, text)
                });
                match parsed {
                    Ok(file) => tree.files.push(file),
                    Err(error) => tree.unreadable.push(format!("{}: {error}", shown.display())),
                }
            }
        }
        tree.mark_test_files();
        Ok(tree)
    }

    /// Marks whole files as tests if their declaration does so.
    pub(crate) fn mark_test_files(&mut self) {
        let declared: BTreeSet<ModulePath> =
            self.files.iter().flat_map(|file| file.test_modules.iter().cloned()).collect();
        for file in &mut self.files {
            let by_declaration = declared.iter().any(|module| file.module.starts_with(module));
            let by_crate =
                file.crate_root.first().is_some_and(|name| TEST_CRATES.contains(&name.as_str()));
            if by_declaration || by_crate {
                file.test_lines.fill(true);
            }
        }
    }
}

/// The `src` folder that contains `folder`, and the module path of that crate's root.
fn crate_of(folder: &Path) -> (PathBuf, ModulePath) {
    let Some(package) = folder.ancestors().find(|above| above.join("Cargo.toml").is_file()) else {
        return (folder.to_path_buf(), Vec::new());
    };
    let in_crates = package.parent().and_then(Path::file_name).is_some_and(|name| name == "crates");
    let name = package.file_name().map(|name| name.to_string_lossy().replace('-', "_"));
    let root = name.filter(|_| in_crates).and_then(|name| crate_module(&name));
    (package.join("src"), root.into_iter().collect())
}

/// The name of a crate without the project's prefix; none for the root package.
pub(crate) fn crate_module(name: &str) -> Option<String> {
    match name.strip_prefix(CRATE_PREFIX) {
        Some("") => None,
        Some(rest) => Some(rest.trim_start_matches('_').to_owned()),
        None => Some(name.to_owned()),
    }
}

/// True if the first name of a path is one of the project's crates.
pub(crate) fn is_own_crate(name: &str) -> bool {
    name.strip_prefix(CRATE_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// The module whose body a file is.
fn module_of(crate_root: &[String], below_source: &Path) -> ModulePath {
    let mut module = crate_root.to_vec();
    let without_extension = below_source.with_extension("");
    module.extend(without_extension.iter().map(|part| part.to_string_lossy().into_owned()));
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    // The order of directory entries differs between machines, but the output must not.
    found.sort();
    Ok(found)
}

/// Finds lines that are compiled for tests only.
struct TestFinder {
    here: ModulePath,
    lines: Vec<bool>,
    modules: Vec<ModulePath>,
}

impl TestFinder {
    fn mark(&mut self, node: &impl Spanned) {
        let span = node.span();
        let range = span.start().line.saturating_sub(1)..span.end().line;
        if let Some(lines) = self.lines.get_mut(range) {
            lines.fill(true);
        }
    }
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast Item) {
        if implies_test(ItemHead::of_item(item).attributes) {
            self.mark(item);
            if let Item::Mod(module) = item
                && module.content.is_none()
            {
                let name = module.ident.to_string();
                self.modules.push(self.here.iter().cloned().chain([name]).collect());
            }
        } else if let Item::Mod(module) = item {
            self.here.push(module.ident.to_string());
            visit::visit_item(self, item);
            self.here.pop();
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if implies_test(ItemHead::of_impl_item(item).attributes) {
            self.mark(item);
        } else {
            visit::visit_impl_item(self, item);
        }
    }
}

/// The common parts of items of all kinds.
pub(crate) struct ItemHead<'a> {
    pub(crate) attributes: &'a [Attribute],
    /// Visibility and name. None for items without them, such as an `impl`, and for uses and
    /// modules, where they are not needed.
    pub(crate) named: Option<(&'a Visibility, &'a Ident)>,
    pub(crate) kind: ItemKind,
}

/// Kinds of items that are counted differently.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ItemKind {
    StructOrEnum,
    OtherType,
    NoType,
}

impl<'a> ItemHead<'a> {
    pub(crate) fn of_item(item: &'a Item) -> Self {
        use ItemKind::{NoType, OtherType, StructOrEnum};
        let (attributes, named, kind) = match item {
            Item::Const(item) => (&item.attrs, Some((&item.vis, &item.ident)), NoType),
            Item::Enum(item) => (&item.attrs, Some((&item.vis, &item.ident)), StructOrEnum),
            Item::Fn(item) => (&item.attrs, Some((&item.vis, &item.sig.ident)), NoType),
            Item::Impl(item) => (&item.attrs, None, NoType),
            Item::Macro(item) => (&item.attrs, None, NoType),
            Item::Mod(item) => (&item.attrs, None, NoType),
            Item::Static(item) => (&item.attrs, Some((&item.vis, &item.ident)), NoType),
            Item::Struct(item) => (&item.attrs, Some((&item.vis, &item.ident)), StructOrEnum),
            Item::Trait(item) => (&item.attrs, Some((&item.vis, &item.ident)), OtherType),
            Item::Type(item) => (&item.attrs, Some((&item.vis, &item.ident)), OtherType),
            Item::Union(item) => (&item.attrs, Some((&item.vis, &item.ident)), OtherType),
            Item::Use(item) => (&item.attrs, None, NoType),
            _ => return Self { attributes: &[], named: None, kind: NoType },
        };
        Self { attributes, named, kind }
    }

    /// The head of an item in an `impl`; associated types are not definitions of their own.
    pub(crate) fn of_impl_item(item: &'a ImplItem) -> Self {
        let (attributes, named): (&[Attribute], _) = match item {
            ImplItem::Const(item) => (&item.attrs, Some((&item.vis, &item.ident))),
            ImplItem::Fn(item) => (&item.attrs, Some((&item.vis, &item.sig.ident))),
            _ => (&[], None),
        };
        Self { attributes, named, kind: ItemKind::NoType }
    }
}

/// True if attributes contain `#[test]`, or a `#[cfg]` that cannot hold in a shipped build.
fn implies_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if path.is_ident("cfg") {
            attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        } else {
            path.is_ident("test")
        }
    })
}

/// `any(test, feature = "x")` is product code, because some build without tests has it.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parse) else { return false };
    match () {
        () if list.path.is_ident("all") => parts.iter().any(needs_test),
        () if list.path.is_ident("any") => !parts.is_empty() && parts.iter().all(needs_test),
        () => false,
    }
}

/// A file for unit tests, as the body of a module such as `gui::views`.
#[cfg(test)]
pub(crate) fn parsed(module: &str, text: &str) -> SourceFile {
    let module: ModulePath =
        module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let path = PathBuf::from(format!("{}.rs", module.join("/")));
    SourceFile::parse(path, Vec::new(), module, text.to_owned()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_marked_and_product_code_is_not() {
        let file = parsed("a", "fn product() {}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n");
        assert_eq!((file.product_lines(), file.test_lines()), (1, 4));
        assert!(!file.is_test(1) && file.is_test(2) && file.is_test(5) && !file.is_test(6));
    }

    #[test]
    fn only_conditions_that_need_test_are_tests() {
        for (condition, lines) in [
            ("test", 2),
            ("all(test, feature = \"gui\")", 2),
            ("any(test, feature = \"gui\")", 0),
            ("not(test)", 0),
            ("feature = \"test\"", 0),
        ] {
            let file = parsed("a", &format!("#[cfg({condition})]\nfn f() {{}}\n"));
            assert_eq!(file.test_lines(), lines, "{condition}");
        }
    }

    #[test]
    fn files_declared_for_tests_are_tests_with_all_below_them() {
        let files = vec![
            parsed("gui", "#[cfg(test)]\nmod vision;\nmod views;\n"),
            parsed("gui::vision", "fn f() {}\n"),
            parsed("gui::vision::palettes", "fn f() {}\n"),
            parsed("gui::views", "fn f() {}\n"),
        ];
        let mut tree = SourceTree { files, unreadable: Vec::new() };
        tree.mark_test_files();
        let tests: Vec<usize> = tree.files.iter().map(SourceFile::test_lines).collect();
        assert_eq!(tests, [2, 1, 1, 0]);
    }

    #[test]
    fn both_layouts_give_the_same_modules() {
        let old = module_of(&[], Path::new("sim/planner/mod.rs"));
        let sim = crate_module("tilescope_sim").into_iter().collect::<Vec<_>>();
        assert_eq!(old, module_of(&sim, Path::new("planner/mod.rs")));
        assert_eq!(module_of(&sim, Path::new("lib.rs")), ["sim"]);
        assert_eq!(crate_module("tilescope"), None);
        assert!(is_own_crate("tilescope_gui") && !is_own_crate("tilescopes"));
    }

    #[test]
    fn a_folder_holds_what_is_below_it_and_not_what_only_begins_like_it() {
        assert!(parsed("sim::planner::search", "").is_below("sim/planner"));
        assert!(parsed("sim::planner", "").is_below("sim/planner"));
        assert!(!parsed("sim::planner_cache", "").is_below("sim/planner"));
        assert!(!parsed("sim", "").is_below("sim/planner"));
    }
}
