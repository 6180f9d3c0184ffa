//! Numbers for people, everywhere: what commands print as text and what a page says has thousands
//! apart, few figures, and units as people write them.

use crate::common::{stdout, tilescope};

const REPORTS: [&str; 3] =
    ["sample_reports/matmul_chain", "sample_reports/mnist_pipeline", "sample_reports/too_large"];

/// Words in front of a number that names something.
const NAMES: [&str; 8] = ["step", "tile", "id", "program", "port", "line", "seed", "version"];

/// Figures behind the point, zeros in front left out, that somebody still reads.
const MOST_DECIMALS: usize = 5;

/// The numbers of a text that a machine has written.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let word = word.trim_matches(|letter: char| "()[],;:%*\"'…".contains(letter));
            let before = at.checked_sub(1).map_or("", |at| words[at]);
            let before = before.trim_matches(|letter: char| "()[],;:".contains(letter));
            if is_fault(word, before) {
                faults.push(format!("{word} in {line:?}"));
            }
        }
    }
    faults
}

fn is_fault(word: &str, before: &str) -> bool {
    let begins_with_digit = before.trim_start_matches(['+', '-']).starts_with(char::is_numeric);
    if word == "us" && begins_with_digit {
        return true;
    }
    let number = word.trim_start_matches(['+', '-']);
    let (number, _) = number.split_once('e').unwrap_or((number, ""));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_digits(&whole.replace(',', "")) || !is_digits(decimals) {
        return false;
    }
    let is_name = NAMES.contains(&before.to_lowercase().trim_end_matches('s'));
    let has_separators = whole.len() <= 4 || whole.contains(',') || is_name;
    !has_separators
        || decimals.starts_with("0000")
        || decimals.trim_start_matches('0').len() > MOST_DECIMALS
}

/// The text of a page, without elements, script, style, and what is shown as it was typed.
fn text_of_page(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, behind)) = rest.split_once('<') {
        text.push_str(before);
        text.push('\n');
        let name: String = behind.chars().take_while(|letter| letter.is_alphanumeric()).collect();
        let end = match name.as_str() {
            "script" | "style" | "pre" | "code" => format!("</{name}>"),
            _ => ">".to_owned(),
        };
        rest = behind.split_once(end.as_str()).map_or("", |(_, behind)| behind);
    }
    text + rest
}

#[test]
fn commands_and_pages_write_numbers_for_people() {
    let mut wrong = Vec::new();
    let mut check = |what: String, text: &str| {
        let faults = faults(text);
        wrong.extend(faults.into_iter().take(5).map(|fault| format!("{what}: {fault}")));
    };
    for report in REPORTS {
        for command in ["summary", "why", "insights", "verify"] {
            check(format!("{command} {report}"), &stdout(&tilescope(&[command, report])));
        }
        check(format!("find {report}"), &stdout(&tilescope(&["find", report, "in:steps a"])));
        let directory = tempfile::tempdir().expect("a directory");
        let page = directory.path().join("page.html");
        let page_text = page.to_string_lossy();
        assert!(tilescope(&["report", report, "-o", &page_text]).status.success());
        let page = std::fs::read_to_string(&page).expect("a page");
        check(format!("report {report}"), &text_of_page(&page));
    }
    for pair in REPORTS.windows(2) {
        let compared = tilescope(&["compare", pair[0], pair[1]]);
        check(format!("compare {} {}", pair[0], pair[1]), &stdout(&compared));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Commands that simulate write numbers for people as well.
#[test]
fn experiments_write_numbers_for_people() {
    const SPEC: &str = "tests/data/specs/perceptron.toml";
    let commands: [&[&str]; 6] = [
        &["sweep", SPEC, "--vary", "model.batch_size=8,16,32"],
        &["tune", SPEC, "--budget", "4"],
        &["sensitivity", SPEC],
        &["series", REPORTS[1], REPORTS[0], REPORTS[2]],
        &["validate", "tests/data/few_ops.csv"],
        &["model"],
    ];
    let mut wrong = Vec::new();
    for command in commands {
        let text = stdout(&tilescope(command));
        assert!(text.contains(char::is_numeric), "{command:?}: {text}");
        let faults = faults(&text).into_iter().take(5);
        wrong.extend(faults.map(|fault| format!("{}: {fault}", command[0])));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_are_found() {
    for text in ["takes 12345 cycles", "1850000000.0", "26.0 us", "0.000002266 s", "1.1804511e-5"] {
        assert_eq!(faults(text).len(), 1, "{text}");
    }
    for text in ["12,345 cycles", "step 15830", "26.0 µs", "0.0007962", "cs12345_a", "1.180e-5"] {
        assert!(faults(text).is_empty(), "{text}: {:?}", faults(text));
    }
    let page = "<p title=\"123456\">1,234</p><script>1234567</script>";
    assert!(faults(&text_of_page(page)).is_empty());
}
