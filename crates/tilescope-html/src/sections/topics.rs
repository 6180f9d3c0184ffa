//! Topics without a separate section: facts, figures and tables, drawn generically.

use super::PageFacts;
use crate::block::{Block, Card};
use crate::names::prose;
use crate::page::Section;
use crate::svg::figure;
use tilescope_analysis::headline::HeadlineFigure;
use tilescope_analysis::topics::{TOPICS, Topic};
use tilescope_report::ReportError;

/// Returns a section for each topic without a view.
pub(crate) fn sections(facts: &PageFacts<'_>) -> Result<Vec<Section>, ReportError> {
    let mut sections = Vec::new();
    for topic in TOPICS.iter().filter(|topic| !topic.has_view) {
        let blocks = blocks(topic, facts)?;
        sections.push(Section { id: topic.id, title: topic.title, blocks });
    }
    Ok(sections)
}

/// Facts, figures and tables of a topic.
fn blocks(topic: &Topic, facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let mut blocks = vec![Block::note(prose(topic.about))];
    let cards: Vec<Card> = (topic.facts)(facts.report)?.into_iter().map(card).collect();
    if !cards.is_empty() {
        blocks.push(Block::Cards { cards });
    }
    for (of, figure) in topic.read_figures(facts.report)? {
        blocks.push(figure::block(&figure, of.about));
    }
    for table in topic.all_tables() {
        blocks.push(Block::Table { table: facts.table(table.view, table.name)? });
    }
    Ok(blocks)
}

/// A fact as a card.
pub(crate) fn card(figure: HeadlineFigure) -> Card {
    Card {
        title: figure.title.to_owned(),
        formula: figure.hint(),
        value: figure.value,
        about: figure.about,
        bad: figure.bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageReport;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::Report;

    #[test]
    fn every_topic_has_blocks_of_all_its_figures_and_tables() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = ReportBuilder::new(2, 8).write(directory.path()).expect("written");
        let report = Report::open(path).expect("opened");
        let of = PageReport { report: &report, name: "report" };
        let facts = PageFacts::read(of, None).expect("facts");
        for topic in TOPICS {
            let blocks = blocks(topic, &facts).expect("blocks");
            let tables = blocks.iter().filter(|block| matches!(block, Block::Table { .. })).count();
            assert_eq!(tables, topic.all_tables().count(), "{}", topic.id);
            assert!(blocks.len() > tables + topic.figures.len(), "{}", topic.id);
        }
    }
}
