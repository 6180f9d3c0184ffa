//! The reasons why a command ends without its result: a variant for each kind of failure, its
//! message, and its exit code.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use tilescope_analysis::compare::UnknownDifferencesError;
use tilescope_analysis::find::SearchQueryError;
use tilescope_analysis::gates::GateSyntaxError;
use tilescope_analysis::series::SeriesError;
use tilescope_analysis::sql::SqlError;
use tilescope_analysis::tables::UnknownTableError;
use tilescope_analysis::topics::UnknownTopicError;
use tilescope_experiments::ExperimentError;
use tilescope_experiments::program_error::{ProgramError, SpecPlace};
use tilescope_html::HtmlPageError;
use tilescope_report::ReportError;
use tilescope_report::atomic_file::AtomicFileError;
use tilescope_report::remote::{RemoteAddressError, RemoteCommandError};
use tilescope_report::temporary_directory::TemporaryDirectoryError;
use tilescope_report::units::{StepId, grouped};
use tilescope_sim::SimulateError;
use tilescope_sim::cost_constants::ConstantError;
use tilescope_sim::specification::{SpecError, SpecLocation};

/// An error of a library that not every build has, or that only one command can have.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// The reason why a command ended without its result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Failed(#[from] JobError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error(transparent)]
    Gate(#[from] GateSyntaxError),
    #[error(transparent)]
    UnknownTable(#[from] UnknownTableError),
    #[error(transparent)]
    UnknownDifferences(#[from] UnknownDifferencesError),
    #[error(transparent)]
    UnknownTopic(#[from] UnknownTopicError),
    #[error(transparent)]
    Constant(#[from] ConstantError),
    #[error(transparent)]
    Address(#[from] RemoteAddressError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Series(#[from] SeriesError),
    #[error(transparent)]
    Page(#[from] HtmlPageError),
    #[error(transparent)]
    Sql(SqlError),
    /// An experiment has no result.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error(transparent)]
    TemporaryDirectory(#[from] TemporaryDirectoryError),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] AtomicFileError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Writing results failed.
    #[error("cannot write results: {0}")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Remote(RemoteCommandError),
    /// The error of the command that was run on the machine of a report.
    #[error("{problem}")]
    There { code: u8, problem: String },
    /// Gates are violated.
    #[error("{}", .0.join("\n       "))]
    Violated(Vec<String>),
}

impl CliError {
    /// 2 for requests that the user must change, 3 for violated gates, otherwise 1.
    pub(super) fn exit_code(&self) -> u8 {
        let is_usage = match self {
            Self::Violated(_) => return 3,
            Self::There { code, .. } => return *code,
            Self::Experiment(error) => error.is_usage(),
            Self::Simulate(error) => !matches!(error, SimulateError::Report(_)),
            Self::Report(error) => matches!(error, ReportError::EmptySlice { .. }),
            Self::Page(error) => matches!(error, HtmlPageError::TooManyFigures { .. }),
            Self::Sql(error) => matches!(error, SqlError::Question(_)),
            Self::File(error) => matches!(error, AtomicFileError::Report { .. }),
            Self::Usage(_)
            | Self::Spec(_)
            | Self::Gate(_)
            | Self::UnknownTable(_)
            | Self::UnknownDifferences(_)
            | Self::UnknownTopic(_)
            | Self::Constant(_)
            | Self::Address(_) => true,
            Self::Failed(_)
            | Self::Series(_)
            | Self::TemporaryDirectory(_)
            | Self::Json(_)
            | Self::Output(_)
            | Self::Remote(_) => false,
        };
        if is_usage { 2 } else { 1 }
    }

    /// The line that a parent process reads.
    pub(super) fn for_parent(&self) -> ProgramError {
        let place = match self {
            Self::Spec(error) => match &error.location {
                SpecLocation::Line { file, line } => Some(SpecPlace {
                    file: file.clone(),
                    line: *line,
                    message: error.without_place(),
                }),
                SpecLocation::Override | SpecLocation::NotWritten => None,
            },
            _ => None,
        };
        ProgramError { text: self.to_string(), is_usage: self.exit_code() == 2, place }
    }
}

impl From<SqlError> for CliError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Output(error) => Self::Output(error),
            error => Self::Sql(error),
        }
    }
}

/// Requests that the user has to change: exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    /// A request that contradicts itself, for any files.
    #[error("{0}")]
    Request(&'static str),
    #[cfg(not(all(feature = "gui", feature = "parquet")))]
    #[error("this build {lacks} (it lacks the cargo feature {feature:?}); {instead}")]
    NotBuilt { lacks: &'static str, feature: &'static str, instead: &'static str },
    /// The value of an option that its reader refuses.
    #[error("{option}: {problem}")]
    Option { option: &'static str, problem: String },
    #[error("{option} expects {expects}, not {found}")]
    OptionExpects { option: String, expects: String, found: String },
    #[error("expected {expects}, not {found:?}")]
    Expects { expects: &'static str, found: String },
    #[error("{option} takes a half-open range such as 1000..2000, not {text:?}")]
    NoRange { option: &'static str, text: String },
    #[error("{option} {text} is empty: the end is not part of a range")]
    EmptyRange { option: &'static str, text: String },
    #[error("{option}: {text:?} is not a number")]
    NoNumber { option: &'static str, text: String },
    #[error("--range {text} is outside the run, which is {run:?}")]
    OutsideRun { text: String, run: Range<u64> },
    #[error("{option} {text}: the report has {has}")]
    NotInReport { option: &'static str, text: String, has: String },
    /// An unknown name, with suggestions.
    #[error("unknown {what} {name:?}{hint}")]
    Unknown { what: &'static str, name: String, hint: String },
    #[error("unknown name {name:?} of samples; known: {known}")]
    UnknownGrouping { name: String, known: String },
    #[error("{given:?}: expected a dimension of the file and a number; known: {known}")]
    NoDimension { given: String, known: String },
    #[error("{0} is a file, not a bundled spec")]
    NotBundled(String),
    #[error("argument {name} is missing: {about}")]
    MissingArgument { name: &'static str, about: &'static str },
    #[error("{0} is not available as a table: query it with sql")]
    AskedInSql(&'static str),
    #[error("argument {argument} requires the topic {topic}")]
    OtherTopic { argument: &'static str, topic: &'static str },
    #[error("argument {0} cannot be used with sql or find")]
    NotForAnswers(&'static str),
    #[error("--{option} cannot be used with --format {format}; it applies to {takers}")]
    OtherFormat { option: &'static str, format: &'static str, takers: String },
    #[error("--format {0} requires --view; `tilescope export --list-views` lists the views")]
    NoView(&'static str),
    #[error("{0} is both free and fixed")]
    FreeAndFixed(String),
    #[error("a series simulates at most {0} specs")]
    TooManySpecs(usize),
    #[error("{path} does not match {other}: {difference}", path = .path.display(), other = .other.display())]
    OtherSpec { path: PathBuf, other: PathBuf, difference: String },
    /// A file of the wrong kind for the request.
    #[error("{file} {is}", file = .file.display())]
    WrongFile { file: PathBuf, is: &'static str },
    #[cfg(any(feature = "gui", feature = "parquet"))]
    #[error("{file}: {problem}", file = .file.display())]
    FileProblem { file: PathBuf, problem: &'static str },
    #[error("this report has no spec to change: only reports that tilescope simulated have one")]
    NoSpec,
    #[error("step {step} does not exist: the report has {} steps", grouped(*.steps))]
    NoStep { step: StepId, steps: u64 },
    #[error("replica {replica} does not exist: the run has {replicas}, counted from 0")]
    NoReplica { replica: u32, replicas: u32 },
    #[error("step {step} did not run on that IPU: it ran on {places}")]
    StepElsewhere { step: StepId, places: String },
    #[error("{}\n  {text}\n  {}^", .error.problem, " ".repeat(.error.at))]
    Search { error: SearchQueryError, text: String },
    #[error("cannot read {file}: {error}")]
    Measurements { file: String, error: io::Error },
    /// An invalid input of the user, with its place: a row of measurements, or one of several
    /// specs.
    #[error("{place}: {error}")]
    Input { place: String, error: AnyError },
    #[error("{0} (--yes simulates it anyway)")]
    TooLong(SimulateError),
    /// An unknown table, or a selection of rows that it does not support.
    #[error(transparent)]
    Table(AnyError),
    /// The message of a child about a copy of a spec, with the name that the agent uses.
    #[error("{0}")]
    SpecOfAgent(String),
}

impl UsageError {
    pub(crate) fn unknown(what: &'static str, name: &str, hint: impl Into<String>) -> Self {
        Self::Unknown { what, name: name.to_owned(), hint: hint.into() }
    }

    pub(crate) fn no_percentage(option: &str, found: f64) -> Self {
        let expects = "a percentage of at least 0".to_owned();
        Self::OptionExpects { option: option.to_owned(), expects, found: found.to_string() }
    }
}

/// A job that failed: exit code 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    #[error("the trace has no lane with step {0}")]
    StepOnNoLane(StepId),
    #[error("{name} is not recorded in this report: it has no {missing}")]
    QuestionNotRecorded { name: &'static str, missing: String },
    #[error("unchanged spec: {0}")]
    UnchangedSpec(String),
    #[error("{0}")]
    Shortfall(String),
    #[error("{died} of {points} points failed: {again}")]
    Died { died: usize, points: usize, again: &'static str },
    #[error("{end} has no {figure}: {reason}", end = .end.display())]
    NoFigure { end: PathBuf, figure: &'static str, reason: String },
    #[error("the simulation of {0} does not fit in memory, so it has no run")]
    DoesNotFit(String),
    #[error("--baseline: {name} could not be read: {problem}")]
    UnreadBaseline { name: String, problem: String },
    #[error("no report could be read:\n       {}", .0.join("\n       "))]
    NoReport(Vec<String>),
    #[error("git {command}: {problem}")]
    Git { command: String, problem: String },
    #[error("simulating with {change:?}: {problem}")]
    Child { change: String, problem: String },
    #[error("{count} inconsistencies found: {report}", report = .report.display())]
    Inconsistent { count: usize, report: PathBuf },
    /// A report that lacks the requested data.
    #[error("{problem}: {report}", report = .report.display())]
    NotRecorded { problem: &'static str, report: PathBuf },
    /// Files without any data for an answer.
    #[error("{0}")]
    Nothing(&'static str),
    /// A problem of a program or figure of `reproduce`.
    #[error("{of}: {problem}")]
    Published { of: String, problem: String },
    #[error("a published run and program {program} are not comparable: the program has {change}")]
    ChangedMachine { program: String, change: String },
    #[error("{what}: {error}")]
    Read { what: &'static str, error: io::Error },
    #[error("{error}: {file}", file = .file.display())]
    ReadFile { file: PathBuf, error: io::Error },
    #[error("{file}: {error}", file = .file.display())]
    InFile { file: PathBuf, error: AnyError },
    #[error("the specs cannot be read: {0}")]
    Specs(AnyError),
    /// The message of a child about a copy of a spec, with the name that the agent uses.
    #[error("{0}")]
    SpecOfAgent(String),
    /// The error of an optional front end.
    #[error(transparent)]
    Other(AnyError),
}
