//! The README tells the truth about keys and models.

use tilescope::sim::model::MODELS;
use tilescope::sim::spec::keys::KEYS;

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("README.md")
}

#[test]
fn every_key_is_in_the_table_with_its_default_and_meaning() {
    let readme = readme();
    for key in KEYS {
        let default =
            if key.default.is_empty() { "-".to_string() } else { format!("`{}`", key.default) };
        let row =
            format!("| `{}` | {} | {default} | {} |", key.path, key.form.describe(), key.about);
        assert!(readme.contains(&row), "README.md lacks this row:\n{row}");
    }
}

#[test]
fn every_model_is_named() {
    let readme = readme();
    for model in MODELS {
        assert!(readme.contains(&format!("`{}`", model.name)), "{}", model.name);
    }
}
