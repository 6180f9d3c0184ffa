//! Names of types: names shared by several types, and names of a single word.

use std::collections::BTreeMap;

use syn::Item;
use syn::visit::{self, Visit};

use crate::source::{ItemHead, ItemKind, SourceFile};

/// The definition of a type.
pub(crate) struct TypeDefinition {
    pub(crate) name: String,
    pub(crate) kind: ItemKind,
    pub(crate) place: String,
}

/// Structs, enums, unions, traits and type aliases of product code, also those inside functions;
/// associated types are not definitions of their own.
pub(crate) fn type_definitions(source: &SourceFile) -> Vec<TypeDefinition> {
    let mut finder = DefinitionFinder { source, found: Vec::new() };
    finder.visit_file(&source.tree);
    finder.found
}

struct DefinitionFinder<'a> {
    source: &'a SourceFile,
    found: Vec<TypeDefinition>,
}

impl<'ast> Visit<'ast> for DefinitionFinder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let ItemHead { named, kind, .. } = ItemHead::of_item(item);
        if let Some((_, ident)) = named.filter(|_| kind != ItemKind::NoType) {
            let line = ident.span().start().line;
            if !self.source.is_test(line) {
                let name = ident.to_string();
                let place = self.source.place(line);
                self.found.push(TypeDefinition { name, kind, place });
            }
        }
        visit::visit_item(self, item);
    }
}

/// Names with more than one definition, the most shared first, each with its places.
pub(crate) fn shared_names<'a>(
    definitions: impl IntoIterator<Item = &'a TypeDefinition>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for definition in definitions {
        by_name.entry(&definition.name).or_default().push(&definition.place);
    }
    let mut shared: Vec<_> = by_name.into_iter().filter(|(_, places)| places.len() > 1).collect();
    shared.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    shared
}

/// Words of a camel-case name. A capital begins one after a small letter or digit, or as the last
/// of several capitals: `DType` and `IpuId` have two, `IPU` and `Conv2d` one.
pub(crate) fn words(name: &str) -> usize {
    let letters: Vec<char> = name.chars().filter(|&letter| letter != '_').collect();
    let begins = |at: usize| {
        let after_small = at == 0 || !letters[at - 1].is_uppercase();
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        letters[at].is_uppercase() && (after_small || before_small)
    };
    (0..letters.len()).filter(|&at| begins(at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parsed;

    fn names(text: &str) -> Vec<String> {
        let found = type_definitions(&parsed("a", text));
        found.into_iter().map(|definition| definition.name).collect()
    }

    #[test]
    fn every_kind_of_definition_counts_also_inside_functions() {
        let text = "struct A; enum B {} union C { x: u8 } trait D {} type E = u8;\n\
                    fn f() { struct F; }\nmod m { pub struct G; }\n";
        assert_eq!(names(text), ["A", "B", "C", "D", "E", "F", "G"]);
    }

    #[test]
    fn associated_types_uses_and_tests_do_not_count() {
        let text = "impl Iterator for A { type Item = u8; }\ntrait D { type Out; }\nuse x::Y;\n\
                    #[cfg(test)]\nmod tests { struct T; }\n";
        assert_eq!(names(text), ["D"]);
    }

    #[test]
    fn names_are_shared_from_two_definitions_on() {
        let at = |name: &str, place: &str| TypeDefinition {
            name: name.to_owned(),
            kind: ItemKind::OtherType,
            place: place.to_owned(),
        };
        let definitions = [at("Row", "1"), at("Tab", "2"), at("Tabs", "3"), at("Tab", "4")];
        assert_eq!(shared_names(&definitions), [("Tab", vec!["2", "4"])]);
    }

    #[test]
    fn words_are_camel_case_humps() {
        for (name, expected) in
            [("Made", 1), ("IPU", 1), ("Conv2d", 1), ("DType", 2), ("IpuId", 2), ("IPUId", 2)]
        {
            assert_eq!(words(name), expected, "{name}");
        }
        assert_eq!(words("ChunkStoreGeneration"), 3);
        assert_eq!(words("U64Range"), 2);
    }
}
