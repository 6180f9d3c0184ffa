use tilescope::sim::spec::keys::KEYS;
fn main(){ for key in KEYS { let default = if key.default.is_empty() { "-".to_string() } else { format!("`{}`", key.default) }; println!("| `{}` | {default} | {}: {} |", key.path, key.about, key.form.describe()); } }
