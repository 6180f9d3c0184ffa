//! Topics: questions about a report, each answered with facts, figures and tables.
//!
//! A topic is a file here and an entry in [`TOPICS`]. The window, the HTML page, CSV, Parquet, SQL,
//! JSON, the server for agents and Python show all three without special knowledge of the topic.
//!
//! Topics with the name of a view are also drawn by that view; their tables are those of
//! [`TABLES`](crate::tables::TABLES).

mod execution_trace;
mod limits;
mod liveness;
mod memory;
mod summary;

pub use limits::{roofline_figure, waterfall_figure};
pub use liveness::liveness_figure;
pub use memory::tile_memory_figure;

use crate::data_table::DataTable;
use crate::figures::Figure;
use crate::headline::HeadlineFigure;
use crate::tables::{self, ReportTable};
use serde::Serialize;
use tilescope_report::{Report, ReportError};

/// A topic with its facts and figures.
#[derive(Debug)]
pub struct Topic {
    /// Its name in links and on the command line: that of a view, or a separate one.
    pub id: &'static str,
    pub title: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    /// Headline figures.
    pub facts: fn(&Report) -> Result<Vec<HeadlineFigure>, ReportError>,
    pub figures: &'static [TopicFigure],
    /// True if a view of its name draws it, and has a separate comparison and section of a page.
    pub has_view: bool,
}

/// A figure of a topic.
#[derive(Debug)]
pub struct TopicFigure {
    /// Its name within the topic.
    pub name: &'static str,
    pub about: &'static str,
    /// Reads the figure; without marks if the report has no data for it.
    pub read: fn(&Report) -> Result<Figure, ReportError>,
}

/// Every topic, in the order of the views.
pub static TOPICS: &[Topic] = &[
    summary::TOPIC,
    Topic::of_view("insights", "Insights", "Which changes are worth making?", &[]),
    memory::TOPIC,
    liveness::TOPIC,
    Topic::of_view("program-tree", "Program tree", "Which programs run, and in which order?", &[]),
    Topic::of_view("operations", "Operations", "What does each operation cost?", &[]),
    limits::TOPIC,
    Topic::of_view(
        "operations-graph",
        "Operations graph",
        "How does data flow between \
                                                            operations?",
        &[],
    ),
    execution_trace::TOPIC,
    Topic::of_view("exchange-code", "Exchange code", "Which tiles send data to which?", &[]),
    Topic::of_view("tile-mapping", "Tile mapping", "Which tiles hold each tensor?", &[]),
];

impl Topic {
    /// Creates the topic of a view, with figures and without facts.
    const fn of_view(
        id: &'static str,
        title: &'static str,
        about: &'static str,
        figures: &'static [TopicFigure],
    ) -> Self {
        Self { id, title, about, facts: |_| Ok(Vec::new()), figures, has_view: true }
    }

    /// The tables of the topic.
    pub fn all_tables(&self) -> impl Iterator<Item = &'static ReportTable> {
        tables::of_view(self.id)
    }

    /// Reads its figures from a report, in order.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read_figures(
        &self,
        report: &Report,
    ) -> Result<Vec<(&'static TopicFigure, Figure)>, ReportError> {
        let mut figures = Vec::new();
        for figure in self.figures {
            figures.push((figure, (figure.read)(report)?));
        }
        Ok(figures)
    }

    /// Reads its facts, figures and tables from a report.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(&self, report: &Report) -> Result<TopicAnswer, ReportError> {
        let mut figures = Vec::new();
        for (of, figure) in self.read_figures(report)? {
            figures.push(FigureAnswer { name: of.name, figure });
        }
        let mut tables = Vec::new();
        for table in self.all_tables() {
            tables.push(TableAnswer { name: table.name, table: (table.read)(report)? });
        }
        let topic = self.id;
        let title = self.title;
        let about = self.about;
        Ok(TopicAnswer { topic, title, about, facts: (self.facts)(report)?, figures, tables })
    }
}

/// Facts, figures and tables of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicAnswer {
    pub topic: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub facts: Vec<HeadlineFigure>,
    pub figures: Vec<FigureAnswer>,
    pub tables: Vec<TableAnswer>,
}

/// A figure with its name within its topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureAnswer {
    pub name: &'static str,
    #[serde(flatten)]
    pub figure: Figure,
}

/// A table with its name within its topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableAnswer {
    pub name: &'static str,
    #[serde(flatten)]
    pub table: DataTable,
}

/// Error for an unknown topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown topic {0:?}; known: {known}", known = known_topics())]
pub struct UnknownTopicError(pub String);

fn known_topics() -> String {
    let names: Vec<&str> = TOPICS.iter().map(|topic| topic.id).collect();
    names.join(", ")
}

/// The topic with a name.
///
/// # Errors
/// No such topic; the error lists the known ones.
pub fn topic(id: &str) -> Result<&'static Topic, UnknownTopicError> {
    let found = TOPICS.iter().find(|topic| topic.id == id);
    found.ok_or_else(|| UnknownTopicError(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_table_has_a_topic() {
        for (at, own) in TOPICS.iter().enumerate() {
            assert!(TOPICS[..at].iter().all(|other| other.id != own.id), "{}", own.id);
            for (at, figure) in own.figures.iter().enumerate() {
                let others = &own.figures[..at];
                assert!(others.iter().all(|other| other.name != figure.name), "{}", figure.name);
            }
            assert!(own.about.ends_with('?'), "{}: {:?} is no question", own.id, own.about);
        }
        for table in tables::all() {
            assert!(topic(table.view).is_ok(), "{} has no topic", table.view);
        }
        assert!(topic("nonsense").unwrap_err().to_string().contains("limits"));
    }
}
