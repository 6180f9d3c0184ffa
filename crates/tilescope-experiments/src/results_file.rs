//! Outcomes in a SQLite file: each simulation is written as it ends, so that it is not repeated
//! after an interruption.

use super::point::Point;
use crate::ExperimentError;
use crate::answers::TuneAnswer;
use crate::trial::{TrialFigures, TrialFinding, TrialOutcome};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_analysis::confidence::{Banded, MemoryFit};
use tilescope_analysis::insights::SpecChanges;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_sim::specification::Spec;

/// Application id that distinguishes these files from other SQLite files: "TSRS".
const APPLICATION_ID: i64 = 0x5453_5253;

/// Version of the tables.
const FORMAT: i64 = 4;

/// The version before the table `search`; its files can be read, and get the table when a search
/// continues.
const WITHOUT_SEARCH: i64 = 2;

/// The version before the table `errors`; its files can be read too.
const WITHOUT_ERRORS: i64 = 3;

/// A row for each point with known errors of the model.
const ERRORS_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS errors (changes TEXT PRIMARY KEY, json TEXT NOT NULL);";

/// At most one row: the result of `tune`, in the form of its JSON output.
const SEARCH_TABLE: &str = "CREATE TABLE search (json TEXT NOT NULL);";

/// One row of `spec`; a row of `points` for each simulation, and one of `findings` for each changed
/// spec with computed insights.
const SCHEMA: &str = "
CREATE TABLE spec (name TEXT NOT NULL, text TEXT NOT NULL, program_version TEXT NOT NULL);
CREATE TABLE points (
    changes TEXT PRIMARY KEY,
    outcome TEXT NOT NULL CHECK (outcome IN ('simulated', 'refused', 'died')),
    cycles INTEGER,
    seconds REAL,
    samples INTEGER,
    fullest_tile_bytes INTEGER,
    ipus INTEGER,
    watts REAL,
    price_per_hour REAL,
    problem TEXT
);
CREATE TABLE findings (changes TEXT PRIMARY KEY, json TEXT NOT NULL);
";

/// The original spec of the points, and the program that simulated them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedSpec {
    /// The name of the spec in the user's spelling.
    pub name: String,
    /// The keys that are set, as TOML.
    pub text: String,
    pub program_version: String,
}

impl SearchedSpec {
    /// Creates the description of a checked spec and this program.
    pub fn of(name: &str, spec: &Spec) -> Self {
        let program_version = env!("CARGO_PKG_VERSION").to_owned();
        Self { name: name.to_owned(), text: spec.text.clone(), program_version }
    }

    /// The difference from another one as text; `None` if points of both are comparable.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.program_version != other.program_version {
            return Some(format!(
                "tilescope {} wrote it, but this is {}",
                other.program_version, self.program_version
            ));
        }
        let lines = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
        };
        let own = lines(&self.text);
        let others = lines(&other.text);
        let only = |these: &[String], those: &[String]| {
            let first = these.iter().find(|line| !those.contains(line)).cloned();
            first.map_or_else(|| "nothing else".to_owned(), |line| format!("`{line}`"))
        };
        (own != others).then(|| {
            let there = only(&others, &own);
            let here = only(&own, &others);
            format!(
                "it belongs to another spec ({}): it has {there}, but {} has {here}",
                other.name, self.name
            )
        })
    }
}

/// An open file of results.
pub struct ResultsFile {
    path: PathBuf,
    connection: Connection,
}

impl ResultsFile {
    /// Opens the results of a spec, or creates a file for them.
    ///
    /// # Errors
    /// A file of another spec or program, a file without results, or one in use by another process.
    pub fn open(path: &Path, spec: &SearchedSpec) -> Result<Self, ExperimentError> {
        let connection =
            Connection::open(path).map_err(|error| ExperimentError::of_results(path, error))?;
        let file = Self { path: path.to_owned(), connection };
        file.begin(spec)?;
        let difference = spec.difference(&file.spec()?);
        match difference {
            None => Ok(file),
            Some(difference) => {
                Err(ExperimentError::OtherSpec { path: path.to_owned(), difference })
            }
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Errors of reading, and a file without results.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        // A process that was killed while writing leaves a journal to roll back, which requires
        // write access.
        let open = |flags: OpenFlags| Connection::open_with_flags(path, flags);
        let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|error| ExperimentError::of_results(path, error))?;
        let file = Self { path: path.to_owned(), connection };
        file.check()?;
        Ok(file)
    }

    /// Creates the tables of a new file, and locks it against other writers.
    fn begin(&self, spec: &SearchedSpec) -> Result<(), ExperimentError> {
        let run = |sql: &str| {
            self.connection
                .execute_batch(sql)
                .map_err(|error| ExperimentError::of_results(&self.path, error))
        };
        run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE")?;
        let tables: i64 = self.number("SELECT count(*) FROM sqlite_schema")?;
        if tables == 0 {
            run(&format!(
                "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}"
            ))?;
            run(SCHEMA)?;
            run(SEARCH_TABLE)?;
            run(ERRORS_TABLE)?;
            let row = params![spec.name, spec.text, spec.program_version];
            let insert = "INSERT INTO spec VALUES (?1, ?2, ?3)";
            self.connection
                .execute(insert, row)
                .map_err(|error| ExperimentError::of_results(&self.path, error))?;
        } else {
            let format = self.check()?;
            if format == WITHOUT_SEARCH {
                run(SEARCH_TABLE)?;
            }
            if format < FORMAT {
                run(&format!("{ERRORS_TABLE} PRAGMA user_version = {FORMAT}"))?;
            }
        }
        run("COMMIT")?;
        self.check().map(|_| ())
    }

    /// The version of its tables; an error for other SQLite files.
    fn check(&self) -> Result<i64, ExperimentError> {
        if self.number("PRAGMA application_id")? != APPLICATION_ID {
            return Err(ExperimentError::NoResults(self.path.clone()));
        }
        let format = self.number("PRAGMA user_version")?;
        let known = WITHOUT_SEARCH..=FORMAT;
        if !known.contains(&format) {
            let path = self.path.clone();
            return Err(ExperimentError::ResultsFormat { path, format, known });
        }
        Ok(format)
    }

    fn number(&self, sql: &str) -> Result<i64, ExperimentError> {
        let number = self.connection.query_row(sql, [], |row| row.get(0));
        number.map_err(|error| ExperimentError::of_results(&self.path, error))
    }

    /// The original spec of its points.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn spec(&self) -> Result<SearchedSpec, ExperimentError> {
        let spec = |row: &Row<'_>| {
            Ok(SearchedSpec { name: row.get(0)?, text: row.get(1)?, program_version: row.get(2)? })
        };
        let found =
            self.connection.query_row("SELECT name, text, program_version FROM spec", [], spec);
        found.map_err(|error| ExperimentError::of_results(&self.path, error))
    }

    /// All points, in the order in which they ended.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn points(&self) -> Result<Vec<Point>, ExperimentError> {
        let failed = |error: rusqlite::Error| ExperimentError::of_results(&self.path, error);
        let errors = if self.check()? > WITHOUT_ERRORS {
            "(SELECT json FROM errors WHERE errors.changes = points.changes)"
        } else {
            "NULL"
        };
        let mut statement = self
            .connection
            .prepare(&format!(
                "SELECT changes, outcome, cycles, seconds, samples, fullest_tile_bytes, ipus, watts,
                 price_per_hour, problem, {errors} FROM points ORDER BY rowid"
            ))
            .map_err(failed)?;
        let rows = statement.query_map([], point).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// Writes the outcome of a point, replacing an earlier one.
    ///
    /// # Errors
    /// A full disk, and other errors of writing; earlier outcomes are kept.
    pub fn add(&self, point: &Point) -> Result<(), ExperimentError> {
        let figures = point.figures();
        let outcome = match &point.outcome {
            TrialOutcome::Figures(_) => "simulated",
            TrialOutcome::Refused(_) => "refused",
            TrialOutcome::Died(_) => "died",
        };
        let problem = Some(point.problem()).filter(|problem| !problem.is_empty());
        let number = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let row = params![
            changes_text(&point.changes),
            outcome,
            number(figures.and_then(|of| of.cycles).map(|cycles| cycles.0)),
            figures.and_then(|of| of.seconds),
            number(figures.map(|of| of.samples)),
            number(figures.map(|of| of.fullest_tile_bytes.0)),
            figures.map(|of| of.ipus),
            figures.and_then(|of| of.watts),
            figures.and_then(|of| of.price_per_hour),
            problem,
        ];
        let insert =
            "INSERT OR REPLACE INTO points VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.written(self.connection.execute(insert, row))?;
        let Some(figures) = figures else { return Ok(()) };
        let errors = KnownErrors {
            expected_seconds: figures.expected_seconds,
            fit: figures.fit,
            expected_fullest_tile: figures.expected_fullest_tile,
        };
        let json = serde_json::to_string(&errors).unwrap_or_default();
        let insert = "INSERT OR REPLACE INTO errors VALUES (?1, ?2)";
        let row = params![changes_text(&point.changes), json];
        self.written(self.connection.execute(insert, row))
    }

    /// Writes the outcomes of several points, all or none.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn add_all(&self, points: &[Point]) -> Result<(), ExperimentError> {
        let run = |sql: &str| {
            self.connection
                .execute_batch(sql)
                .map_err(|error| ExperimentError::of_results(&self.path, error))
        };
        run("BEGIN")?;
        points.iter().try_for_each(|point| self.add(point))?;
        run("COMMIT")
    }

    /// The result of a guided search; `None` if there was none.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn search(&self) -> Result<Option<TuneAnswer>, ExperimentError> {
        if self.check()? == WITHOUT_SEARCH {
            return Ok(None);
        }
        let select = "SELECT json FROM search";
        let json = self.connection.query_row(select, [], |row| row.get::<_, String>(0)).optional();
        let json = json.map_err(|error| ExperimentError::of_results(&self.path, error))?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Writes the result of a guided search, replacing an earlier one.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn set_search(&self, found: &TuneAnswer) -> Result<(), ExperimentError> {
        let json = serde_json::to_value(found).unwrap_or_default().to_string();
        let insert = "INSERT OR REPLACE INTO search (rowid, json) VALUES (1, ?1)";
        self.written(self.connection.execute(insert, [json]))
    }

    /// The findings about a changed spec; `None` if insights were not computed.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn findings(
        &self,
        changes: &SpecChanges,
    ) -> Result<Option<Vec<TrialFinding>>, ExperimentError> {
        let select = "SELECT json FROM findings WHERE changes = ?1";
        let json = self
            .connection
            .query_row(select, [changes_text(changes)], |row| row.get::<_, String>(0))
            .optional()
            .map_err(|error| ExperimentError::of_results(&self.path, error))?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Writes the findings about a changed spec.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn add_findings(
        &self,
        changes: &SpecChanges,
        findings: &[TrialFinding],
    ) -> Result<(), ExperimentError> {
        let json = serde_json::to_string(findings).unwrap_or_default();
        let insert = "INSERT OR REPLACE INTO findings VALUES (?1, ?2)";
        self.written(self.connection.execute(insert, params![changes_text(changes), json]))
    }

    fn written(&self, result: rusqlite::Result<usize>) -> Result<(), ExperimentError> {
        result.map(|_| ()).map_err(|error| match ExperimentError::of_results(&self.path, error) {
            error @ (ExperimentError::DiskFull(_) | ExperimentError::Results { .. }) => {
                ExperimentError::NotAdded(Box::new(error))
            }
            other => other,
        })
    }
}

/// Outcomes by the text of their changes.
#[derive(Clone, Debug, Default)]
pub struct KnownOutcomes(BTreeMap<String, TrialOutcome>);

impl KnownOutcomes {
    /// The outcomes in a file of results, or none without a file. Points that died are left out, to
    /// be tried again.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn of_file(results: Option<&ResultsFile>) -> Result<Self, ExperimentError> {
        let mut known = Self::default();
        let Some(results) = results else { return Ok(known) };
        for point in results.points()? {
            if !point.died() {
                known.insert(point);
            }
        }
        Ok(known)
    }

    /// Stores the outcome of a point.
    pub fn insert(&mut self, point: Point) {
        self.0.insert(changes_text(&point.changes), point.outcome);
    }

    /// The outcome of changes.
    #[must_use]
    pub fn get(&self, changes: &SpecChanges) -> Option<&TrialOutcome> {
        self.0.get(&changes_text(changes))
    }

    /// The points of those changes that have an outcome, in the order of `changes`.
    #[must_use]
    pub fn points(&self, changes: &[SpecChanges]) -> Vec<Point> {
        let mut points = Vec::new();
        for changes in changes {
            if let Some(outcome) = self.get(changes) {
                points.push(Point { changes: changes.clone(), outcome: outcome.clone() });
            }
        }
        points
    }
}

/// Changes in their canonical form, with sorted keys.
pub fn changes_text(changes: &SpecChanges) -> String {
    serde_json::to_string(changes).unwrap_or_default()
}

/// Error bands of the figures of a point, as stored in a file.
#[derive(Default, Serialize, Deserialize)]
struct KnownErrors {
    expected_seconds: Option<Banded>,
    fit: Option<MemoryFit>,
    #[serde(default)]
    expected_fullest_tile: Option<Banded>,
}

fn point(row: &Row<'_>) -> rusqlite::Result<Point> {
    let changes: String = row.get(0)?;
    let outcome: String = row.get(1)?;
    let read_problem = || row.get::<_, Option<String>>(9).map(Option::unwrap_or_default);
    // Negative numbers are invalid, and count as missing.
    let read_number = |at: usize| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(at)?.and_then(|value| u64::try_from(value).ok()))
    };
    let to_error = |error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    };
    let errors: Option<String> = row.get(10)?;
    let errors = errors.map(|json| serde_json::from_str(&json)).transpose().map_err(to_error)?;
    let KnownErrors { expected_seconds, fit, expected_fullest_tile } = errors.unwrap_or_default();
    Ok(Point {
        changes: serde_json::from_str(&changes).map_err(to_error)?,
        outcome: match outcome.as_str() {
            "refused" => TrialOutcome::Refused(read_problem()?),
            "died" => TrialOutcome::Died(read_problem()?),
            _ => TrialOutcome::Figures(TrialFigures {
                cycles: read_number(2)?.map(Cycles),
                seconds: row.get(3)?,
                samples: read_number(4)?.unwrap_or(1),
                fullest_tile_bytes: Bytes(read_number(5)?.unwrap_or(0)),
                ipus: row.get::<_, Option<u32>>(6)?.unwrap_or(1),
                watts: row.get(7)?,
                price_per_hour: row.get(8)?,
                expected_seconds,
                expected_fullest_tile,
                own_errors: None,
                fit,
            }),
        },
    })
}
