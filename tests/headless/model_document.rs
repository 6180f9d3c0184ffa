//! `docs/model.md` lists every constant of the model with its value.

#[test]
fn every_constant_is_in_the_table_with_its_value() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).expect("a file");
    let document = read("docs/model.md");
    let source = read("crates/tilescope-sim/src/poplar/fitted_constants.rs");
    let declared = source.lines().filter(|line| line.starts_with("pub"));
    let constants = declared.filter_map(|line| line.split_once("const "));
    let mut count = 0;
    for (_, constant) in constants {
        let (name, rest) = constant.split_once(':').expect("a typed constant");
        let (_, value) = rest.split_once('=').expect("a value");
        let value = value.trim().trim_end_matches(';');
        // `Cycles(320)`: the table has the number alone.
        let number =
            value.split_once('(').map_or(value, |(_, number)| number.trim_end_matches(')'));
        let row = format!("| `{name}` | {number} |");
        assert!(document.contains(&row), "docs/model.md lacks a row that begins with {row}");
        count += 1;
    }
    let rows =
        document.lines().filter(|line| line.starts_with("| `") && line.contains("_")).count();
    assert_eq!(rows, count, "docs/model.md lists constants that do not exist");
}
