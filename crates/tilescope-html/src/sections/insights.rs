//! Proposals for improvements, with the result if they were tried.

use super::{PageFacts, SectionEntry};
use crate::block::{Block, FindingText};
use crate::names::prose;
use tilescope_analysis::insights::{
    InsightFinding, InsightGain, InsightSubject, InsightVerdict, insights_with_tried,
};
use tilescope_report::ReportError;

pub(super) const SECTION: SectionEntry = SectionEntry { id: "insights", title: "Insights", build };

const BOUNDS: &str = "Gains are upper bounds. A gain of time is what a change removes from the \
                      critical path and from the IPU that works longest; a gain of memory is what it removes from the fullest tiles. Tested proposals were simulated with and without the change: the bar is the measured gain in front of its upper bound, the line its 90 % interval.";

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let (found, problem) = insights_with_tried(facts.report, facts.numbers)?;
    let verdict = InsightVerdict::read(facts.report, facts.numbers)?;
    let mut blocks = vec![Block::note(prose(&verdict.lead)), Block::note(BOUNDS)];
    blocks.extend(problem.map(|problem| {
        Block::note(format!("Earlier test results cannot be read: {}", prose(&problem.to_string())))
    }));
    if found.is_empty() {
        let text = "No rule found anything to improve in this report.";
        return Ok(vec![Block::note(prose(&verdict.lead)), Block::note(text)]);
    }
    if found.iter().all(|finding| finding.measured.is_none()) {
        let text = "No proposal has been tested. tilescope insights REPORT --prove simulates each \
                    one; later pages show the results.";
        let can = facts.report.spec().is_some();
        blocks.extend(can.then(|| Block::note(text)));
    }
    let most = found.iter().filter_map(longest).fold(0.0, f64::max);
    let (first, aside): (Vec<&InsightFinding>, Vec<_>) =
        found.iter().partition(|finding| finding.subject == verdict.first);
    for (title, findings) in [(None, first), (Some(verdict.aside_title()), aside)] {
        if findings.is_empty() {
            continue;
        }
        blocks.extend(title.map(Block::heading));
        let findings = findings.into_iter().map(|finding| words(finding, most)).collect();
        blocks.push(Block::Findings { findings });
    }
    Ok(blocks)
}

/// The possible gain, or the measured one.
fn share(finding: &InsightFinding) -> Option<f64> {
    let most = if finding.gain == InsightGain::Everything { Some(1.0) } else { None };
    finding.measured_gain().or(finding.gain.share()).or(most)
}

/// The longest of the gains that are drawn: the possible one, the measured one, and the end of its
/// interval.
fn longest(finding: &InsightFinding) -> Option<f64> {
    let high = interval(finding).map(|(_, high)| high);
    share(finding).into_iter().chain(finding.gain.share()).chain(high).reduce(f64::max)
}

/// The 90 % interval of the measured gain.
fn interval(finding: &InsightFinding) -> Option<(f64, f64)> {
    let measured = finding.measured.as_ref().filter(|_| finding.measured_gain().is_some())?;
    measured.saved_interval(finding.subject)
}

fn words(finding: &InsightFinding, most: f64) -> FindingText {
    let proposal = finding.proposal.as_ref();
    let on_scale =
        |share: f64| (share.max(0.0) / most.max(f64::MIN_POSITIVE) * 100.0).round() as u32;
    FindingText {
        subject: match finding.subject {
            InsightSubject::Memory => "Memory",
            InsightSubject::Time => "Time",
        },
        sentence: prose(&finding.sentence),
        advice: prose(&finding.advice),
        formula: finding.formula.to_owned(),
        gain: match finding.gain {
            InsightGain::Everything => finding.gain_text(),
            _ => format!("gain {}", finding.gain_text()),
        },
        gain_percent: share(finding).filter(|_| !finding.had_no_gain()).map(on_scale),
        claimed_percent: finding.measured_gain().and(finding.gain.share()).map(on_scale),
        interval_percent: interval(finding).map(|(low, high)| {
            (on_scale(low), on_scale(high).saturating_sub(on_scale(low)).max(1))
        }),
        proposal: proposal.map(|proposal| prose(&proposal.text())),
        cost: proposal.map(|proposal| prose(&proposal.cost)).filter(|cost| !cost.is_empty()),
        tried: finding.measured.as_ref().map(|tried| prose(&tried.text(finding.subject))),
        gained: finding.is_plain_gain(),
        without_gain: finding.had_no_gain(),
        rule: finding.rule.to_owned(),
    }
}
