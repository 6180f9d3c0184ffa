//! Queries a table of numbers from 0 on in SQL.

use super::*;
use std::sync::Mutex;

/// Numbers below 1,000 and their squares, from an argument on; records the requested ones.
struct Squares {
    asked: Mutex<Vec<(i64, i64)>>,
}

struct SquareRows {
    next: i64,
    end: i64,
    row: [i64; 2],
}

const fn column(name: &'static str, role: ColumnRole) -> VirtualColumn {
    VirtualColumn { name, declaration: "INTEGER", role, unit: "", about: "" }
}

const COLUMNS: &[VirtualColumn] = &[
    column("number", ColumnRole::Bounded),
    column("square", ColumnRole::Plain),
    column("first", ColumnRole::Argument),
];

impl VirtualTable for Squares {
    fn columns(&self) -> &'static [VirtualColumn] {
        COLUMNS
    }

    fn order(&self) -> &'static [usize] {
        &[0]
    }

    fn estimate(&self, bounded: &[usize], fixed: &[usize]) -> RowEstimate {
        let unique = fixed.contains(&0);
        RowEstimate { rows: if bounded.is_empty() { 1000.0 } else { 10.0 }, unique }
    }

    fn rows(
        &self,
        bounds: &ColumnBounds,
        _: &dyn Fn(usize) -> bool,
    ) -> Result<Box<dyn VirtualRows>, VirtualTableError> {
        let within = bounds.of(0);
        let first = bounds.value(2).unwrap_or(0);
        if first > 1000 {
            return Err("there is no number above 1,000".into());
        }
        let next = first.max(*within.start());
        let end = within.end().saturating_add(1).min(1000);
        self.asked.lock().unwrap().push((next, end));
        Ok(Box::new(SquareRows { next, end, row: [0; 2] }))
    }
}

impl VirtualRows for SquareRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        self.row = [self.next, self.next * self.next];
        self.next += 1;
        Ok(self.next <= self.end)
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        ValueRef::Integer(self.row[column])
    }
}

fn asked(sql: &str) -> (rusqlite::Result<Vec<i64>>, Vec<(i64, i64)>) {
    let connection = Connection::open_in_memory().unwrap();
    let squares = Arc::new(Squares { asked: Mutex::default() });
    register(&connection, "squares", squares.clone()).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap().collect();
    let asked = squares.asked.lock().unwrap().clone();
    (rows, asked)
}

#[test]
fn only_requested_rows_are_read() {
    type PlanCase<'a> = (&'a str, &'a [i64], &'a [(i64, i64)]);
    let cases: [PlanCase<'_>; 9] = [
        ("SELECT square FROM squares WHERE number = 7", &[49], &[(7, 8)]),
        ("SELECT square FROM squares WHERE number > 3 AND number < 6", &[16, 25], &[(3, 7)]),
        ("SELECT number FROM squares(998)", &[998, 999], &[(998, 1000)]),
        ("SELECT first FROM squares(999)", &[999], &[(999, 1000)]),
        ("SELECT number FROM squares WHERE number IN (3, 1)", &[1, 3], &[(1, 2), (3, 4)]),
        ("SELECT count(*) FROM squares WHERE number = NULL", &[0], &[]),
        ("SELECT number FROM squares WHERE number BETWEEN 2.5 AND 3.5", &[3], &[(2, 5)]),
        // The argument comes from the joined row.
        (
            "SELECT b.number FROM squares a, squares(a.square) b WHERE a.number = 31 AND b.number < 963",
            &[961, 962],
            &[(31, 32), (961, 964)],
        ),
        ("SELECT number FROM squares WHERE number < 2 ORDER BY number DESC", &[1, 0], &[(0, 3)]),
    ];
    for (sql, rows, ranges) in cases {
        let (found, asked) = asked(sql);
        assert_eq!(found.unwrap(), rows, "{sql}");
        assert_eq!(asked, ranges, "{sql}");
    }
}

/// Words with their lengths; records the requested word.
struct WordTable {
    asked: Mutex<Vec<Option<String>>>,
}

struct WordRows(std::vec::IntoIter<&'static str>, &'static str);

impl VirtualTable for WordTable {
    fn columns(&self) -> &'static [VirtualColumn] {
        const WORD: VirtualColumn = VirtualColumn {
            name: "word",
            declaration: "TEXT",
            role: ColumnRole::Bounded,
            unit: "",
            about: "",
        };
        &[WORD]
    }

    fn order(&self) -> &'static [usize] {
        &[]
    }

    fn estimate(&self, _: &[usize], _: &[usize]) -> RowEstimate {
        RowEstimate { rows: 3.0, unique: false }
    }

    fn rows(
        &self,
        bounds: &ColumnBounds,
        _: &dyn Fn(usize) -> bool,
    ) -> Result<Box<dyn VirtualRows>, VirtualTableError> {
        let wanted = bounds.text(0);
        self.asked.lock().unwrap().push(wanted.map(str::to_owned));
        let mut words = vec!["Stage", "stage", "slot"];
        words.retain(|word| wanted.is_none_or(|wanted| wanted == *word));
        Ok(Box::new(WordRows(words.into_iter(), "")))
    }
}

impl VirtualRows for WordRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        let next = self.0.next();
        self.1 = next.unwrap_or_default();
        Ok(next.is_some())
    }

    fn value(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Text(self.1.as_bytes())
    }
}

#[test]
fn a_text_narrows_only_where_it_is_compared_byte_by_byte() {
    let connection = Connection::open_in_memory().unwrap();
    let words = Arc::new(WordTable { asked: Mutex::default() });
    register(&connection, "words", words.clone()).unwrap();
    let cases = [
        ("word = 'stage'", 1, Some("stage")),
        ("word = 'none'", 0, Some("none")),
        ("word = 'stage' COLLATE NOCASE", 2, None),
        ("word > 'Z'", 2, None),
        ("word = 5", 0, None),
        ("word = NULL", 0, None),
    ];
    for (condition, rows, narrowed) in cases {
        words.asked.lock().unwrap().clear();
        let sql = format!("SELECT count(*) FROM words WHERE {condition}");
        let found: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, rows, "{condition}");
        let asked = words.asked.lock().unwrap().clone();
        assert!(asked.iter().all(|asked| asked.as_deref() == narrowed), "{condition}: {asked:?}");
    }
}

#[test]
fn sorted_rows_are_not_sorted_again() {
    let connection = Connection::open_in_memory().unwrap();
    register(&connection, "squares", Arc::new(Squares { asked: Mutex::default() })).unwrap();
    let sorts = |by: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT number FROM squares ORDER BY {by}");
        let mut statement = connection.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).any(|line| line.contains("B-TREE"))
    };
    assert!(!sorts("number"));
    assert!(sorts("number DESC") && sorts("square") && sorts("number, square"));
}

#[test]
fn errors_of_a_table_are_those_of_the_query() {
    let (rows, _) = asked("SELECT number FROM squares(1001)");
    let error = rows.unwrap_err().to_string();
    assert!(error.contains("there is no number above 1,000"), "{error}");
    let (rows, _) = asked("SELECT number FROM squares('many')");
    let error = rows.unwrap_err().to_string();
    assert!(error.contains("argument first is not a number"), "{error}");
}
