//! Changes of bytes, texts and tables.

use crate::report_support::Dice;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

/// Numbers at the limits of sizes, signs and types.
const EXTREMES: [i64; 12] = [
    0,
    1,
    -1,
    255,
    65_536,
    2_147_483_646,
    2_147_483_648,
    -2_147_483_649,
    1 << 40,
    1 << 62,
    i64::MAX,
    i64::MIN,
];

/// Flips bits, overwrites, moves, cuts and repeats parts of a file.
pub(super) fn mutate_bytes(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len() as u64;
        // Headers matter most.
        let span = if dice.chance(3) { length.min(512) } else { length };
        let at = dice.below(span) as usize;
        let end = (at + 1 + dice.below(64) as usize).min(bytes.len());
        match dice.below(6) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at..end].fill(dice.next() as u8),
            2 => {
                let number = dice.pick(&EXTREMES).to_be_bytes();
                let end = (at + number.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..end].to_vec();
                let to = dice.below(length) as usize;
                bytes.splice(to..to, part);
            }
            _ => {
                let to = dice.below(length - (end - at) as u64 + 1) as usize;
                bytes.copy_within(at..end, to);
            }
        }
    }
}

/// Replaces numbers by extremes, and deletes, repeats and swaps words.
pub(super) fn mutate_text(text: &mut String, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let mut words: Vec<String> =
            text.split_inclusive([' ', '\n', ',', '=']).map(str::to_owned).collect();
        if words.is_empty() {
            return;
        }
        let at = dice.below(words.len() as u64) as usize;
        let other = dice.below(words.len() as u64) as usize;
        match dice.below(6) {
            0 => words.swap(at, other),
            1 => drop(words.remove(at)),
            2 => words.insert(at, words[other].clone()),
            3 => words[at] = dice.pick(&EXTREMES).to_string(),
            4 => {
                let number = words.iter().position(|word| word.trim().parse::<f64>().is_ok());
                words[number.unwrap_or(at)] = format!("{}\n", dice.pick(&EXTREMES));
            }
            _ => words[at]
                .insert(0, dice.pick(&['"', '[', '(', '\u{1b}', '\u{202e}', '%', '\'', 'é'])),
        }
        *text = words.concat();
    }
}

/// Changes cells, rows and tables.
pub(super) fn mutate_report(report: &Connection, dice: &mut Dice) {
    let Some(tables) = names(report, "SELECT name FROM sqlite_schema WHERE type = 'table'") else {
        return;
    };
    for _ in 0..=dice.below(3) {
        if tables.is_empty() {
            return;
        }
        let table = &tables[dice.below(tables.len() as u64) as usize];
        let columns = names(report, &format!("SELECT name FROM pragma_table_info('{table}')"));
        let Some(columns) = columns.filter(|columns| !columns.is_empty()) else { continue };
        let column = &columns[dice.below(columns.len() as u64) as usize];
        let other = &columns[dice.below(columns.len() as u64) as usize];
        let row = format!(
            "rowid = (SELECT rowid FROM \"{table}\" LIMIT 1 OFFSET abs(random()) % (1 + (SELECT count(*) FROM \"{table}\")))"
        );
        // A change that a constraint refuses has no effect.
        let _ = match dice.below(8) {
            0..=3 => {
                let value = cell(report, table, column, dice);
                report.execute(
                    &format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE {row}"),
                    params![value],
                )
            }
            4 => report.execute(&format!("UPDATE \"{table}\" SET \"{column}\" = \"{other}\""), []),
            5 => report.execute(&format!("DELETE FROM \"{table}\" WHERE {row}"), []),
            6 => report.execute(&format!("DELETE FROM \"{table}\""), []),
            _ => report.execute(&format!("DROP TABLE \"{table}\""), []),
        };
    }
}

/// A hostile value for a cell.
fn cell(report: &Connection, table: &str, column: &str, dice: &mut Dice) -> Value {
    let now: Option<Value> = report
        .query_row(
            &format!(
                "SELECT \"{column}\" FROM \"{table}\" ORDER BY length(\"{column}\") DESC LIMIT 1"
            ),
            [],
            |row| row.get(0),
        )
        .ok();
    match (now, dice.below(6)) {
        (Some(Value::Blob(bytes)), 0..=3) => Value::Blob(repacked(&bytes, dice)),
        (Some(Value::Blob(mut bytes)), _) => {
            mutate_bytes(&mut bytes, dice);
            Value::Blob(bytes)
        }
        (_, 0..=2) => Value::Integer(dice.pick(&EXTREMES)),
        (_, 3) => Value::Null,
        (_, 4) => Value::Text("x\u{1b}]52;c".repeat(1 + dice.below(8_000) as usize)),
        _ => Value::Real(f64::INFINITY),
    }
}

/// A compressed value with changed content.
fn repacked(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let Ok(mut content) = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, 1 << 24)
    else {
        let mut bytes = bytes.to_vec();
        mutate_bytes(&mut bytes, dice);
        return bytes;
    };
    if dice.chance(8) {
        // A decompression bomb: 64 MiB of zeros in 64 kB.
        content = vec![0; 1 << 26];
    } else {
        mutate_bytes(&mut content, dice);
    }
    miniz_oxide::deflate::compress_to_vec_zlib(&content, 1)
}

fn names(report: &Connection, sql: &str) -> Option<Vec<String>> {
    let mut statement = report.prepare(sql).ok()?;
    let rows = statement.query_map([], |row| row.get(0)).ok()?;
    rows.collect::<Result<_, _>>().ok()
}
