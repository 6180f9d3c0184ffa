//! `docs/format.md` lists the tables of the file as the schema has them.

use std::path::Path;

#[test]
fn format_document_lists_every_table_and_column() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    let text = std::fs::read_to_string(&path).expect("docs/format.md");
    let (introduction, _) = text.split_once("## Tables\n\n").expect("the list of tables");
    let expected =
        format!("{introduction}## Tables\n\n{}\n", tilescope_report::schema::document().trim_end());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing docs/format.md");
        return;
    }
    assert!(text == expected, "docs/format.md differs: UPDATE_DOCS=1 cargo test format_document");
}
