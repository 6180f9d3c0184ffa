//! The findings as cards.

use crate::model::mechanism_page::MechanismPage;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::views::mechanism_links::mechanism_link_ui;
use egui::epaint::RectShape;
use egui::{
    Color32, CornerRadius, Frame, Label, Margin, Rect, RichText, Sense, Shape, Stroke, StrokeKind,
    Ui, Vec2, vec2,
};
use tilescope_analysis::insights::{
    InsightFinding, InsightGain, InsightSubject, Proposal, SpecChanges, TriedProposal,
};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::percent;

/// The size of the picture of a gain.
const BAR: Vec2 = vec2(160.0, 12.0);

/// A click on a part of a finding.
#[derive(Clone, Copy)]
pub(super) enum FindingClick<'a> {
    /// The link to its place.
    Show(&'a ViewLocation),
    /// The changes that it proposes.
    Apply(&'a SpecChanges),
    /// The link to the help page of its mechanism.
    Explain(MechanismPage),
}

/// Shows findings in columns, numbered from `first` on in rows from left to right. Returns the
/// clicked element.
pub(super) fn findings_ui<'a>(
    ui: &mut Ui,
    findings: &[&'a InsightFinding],
    (first, columns): (usize, usize),
) -> Option<FindingClick<'a>> {
    let columns = columns.max(1);
    let mut clicked = None;
    for (start, row) in (first..).step_by(columns).zip(findings.chunks(columns)) {
        ui.columns(columns, |columns| {
            let mut grounds = Vec::new();
            for ((number, finding), ui) in (start..).zip(row.iter().copied()).zip(&mut *columns) {
                let ground = ui.painter().add(Shape::Noop);
                // Columns justify their text, which tears long names apart.
                let card =
                    ui.push_id(number, |ui| ui.vertical(|ui| finding_ui(ui, finding, number)));
                clicked = card.inner.inner.or(clicked);
                grounds.push((ground, card.inner.response.rect, edge_colour(ui, finding)));
            }
            // Cards of a row are as high as the highest: lower ones would leave holes.
            let bottom = grounds.iter().map(|(_, rect, _)| rect.bottom()).fold(0.0, f32::max);
            for ((ground, rect, edge), ui) in grounds.into_iter().zip(columns) {
                ui.painter().set(ground, card_shape(ui, rect.with_max_y(bottom), edge));
            }
        });
    }
    clicked
}

/// Shows one finding: number, possible gain, sentence, advice, link, proposal and its result.
/// Returns the click.
fn finding_ui<'a>(
    ui: &mut Ui,
    finding: &'a InsightFinding,
    number: usize,
) -> Option<FindingClick<'a>> {
    let mut wanted = None;
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().inner_margin(Margin { left: 17, right: 13, top: 9, bottom: 10 });
    frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        ui.horizontal_wrapped(|ui| {
            ui.label(strong(format!("{number}.")));
            let subject = match finding.subject {
                InsightSubject::Memory => "Memory",
                InsightSubject::Time => "Time",
            };
            ui.label(RichText::new(subject).weak().size(text_size::SMALL));
            let text = RichText::new(finding.gain_text())
                .size(text_size::SMALL)
                .color(gain_colour(palette, finding));
            let gain = ui.label(text);
            gain.on_hover_text("Upper bound. Gains of several findings overlap.");
            if let Ok(view) = finding.place.view.parse::<ViewId>() {
                let link = ui.link(
                    RichText::new(format!("Show in {}", view.title())).size(text_size::SMALL),
                );
                if link.clicked() {
                    wanted = Some(FindingClick::Show(&finding.place));
                }
            }
            if let Some(page) = MechanismPage::of_finding(finding)
                && mechanism_link_ui(ui, page, page.title())
            {
                wanted = Some(FindingClick::Explain(page));
            }
        });
        let sentence: String = finding.sentence.chars().take(600).collect();
        let label = Label::new(sentence).wrap().selectable(true);
        ui.add(label).on_hover_text(format!("Formula: {}", finding.formula));
        let advice = RichText::new(&finding.advice).weak();
        ui.add(Label::new(advice).wrap());
        if let Some(proposal) = &finding.proposal
            && proposal_ui(ui, proposal, finding)
        {
            wanted = Some(FindingClick::Apply(&proposal.changes));
        }
    });
    wanted
}

/// The colour of the left edge of a card: the subject of its finding.
fn edge_colour(ui: &Ui, finding: &InsightFinding) -> Color32 {
    let palette = ThemePalette::for_ui(ui);
    match (finding.gain, finding.subject) {
        (InsightGain::Everything, _) => palette.error,
        (_, InsightSubject::Memory) => palette.not_always_live,
        (_, InsightSubject::Time) => palette.compute,
    }
}

/// The ground of a card.
fn card_shape(ui: &Ui, rect: Rect, edge: Color32) -> Shape {
    let palette = ThemePalette::for_ui(ui);
    let stroke = Stroke::new(1.0, palette.rule);
    let corners = CornerRadius::same(6);
    let ground = RectShape::new(rect, corners, palette.raised, stroke, StrokeKind::Inside);
    let at = rect.min + vec2(0.0, 4.0);
    let edge_rect = Rect::from_min_size(at, vec2(4.0, rect.height() - 8.0));
    let edge = RectShape::filled(edge_rect, CornerRadius::same(2), edge);
    Shape::Vec(vec![ground.into(), edge.into()])
}

/// Shows the proposal of a finding, its cost, and its result. Returns true if it should be
/// applied.
fn proposal_ui(ui: &mut Ui, proposal: &Proposal, finding: &InsightFinding) -> bool {
    let palette = ThemePalette::for_ui(ui);
    let small = |words: String| RichText::new(words).size(text_size::SMALL);
    let mut apply = false;
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(proposal.text()).monospace().size(text_size::SMALL));
        let link = ui.link(small("Try in What if".to_owned()));
        apply = link.on_hover_text("Open the spec with these keys changed").clicked();
    });
    let cost = small(format!("Cost: {}", proposal.cost)).weak();
    ui.add(Label::new(cost).wrap());
    if let Some(tried) = &finding.measured {
        let colour = if finding.had_no_gain() { palette.weak_text } else { palette.text };
        let words = small(capitalised(&tried.text(finding.subject))).color(colour);
        let words = if finding.had_no_gain() { words } else { words.strong() };
        ui.add(Label::new(words).wrap());
        gain_bar_ui(ui, finding, tried);
    }
    apply
}

/// Shows the measured gain as a bar with its interval, in front of a band from zero to the upper
/// bound of the gain.
fn gain_bar_ui(ui: &mut Ui, finding: &InsightFinding, tried: &TriedProposal) {
    let Some(measured) = tried.saved(finding.subject) else { return };
    let palette = ThemePalette::for_ui(ui);
    let bound = finding.gain.share();
    let interval = tried.saved_interval(finding.subject);
    let within = interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", percent(low), percent(high))
    });
    let below = bound.map_or_else(String::new, |bound| format!(", upper bound {}", percent(bound)));
    let words = format!("Measured {}{within}{below}", percent(measured));
    ui.horizontal_wrapped(|ui| {
        let width = ui.available_width().min(BAR.x);
        let (rect, bar) = ui.allocate_exact_size(vec2(width, BAR.y), Sense::hover());
        let (low, high) = interval.unwrap_or((measured, measured));
        let most = bound.unwrap_or(0.0).max(high).max(0.0);
        let least = low.min(0.0);
        let scale = f64::from(width) / (most - least).max(f64::MIN_POSITIVE);
        let get_x = |gain: f64| rect.left() + ((gain - least) * scale) as f32;
        let get_bar = |gain: f64, height: f32| {
            let ends = get_x(gain.min(0.0))..=get_x(gain.max(0.0));
            let half = height / 2.0;
            Rect::from_x_y_ranges(ends, rect.center().y - half..=rect.center().y + half)
        };
        let round = CornerRadius::same(2);
        let painter = ui.painter();
        if let Some(bound) = bound {
            painter.rect_filled(get_bar(bound, BAR.y), round, palette.rule);
        }
        let colour = if measured > 0.0 { palette.good } else { palette.warning };
        painter.rect_filled(get_bar(measured, BAR.y - 6.0), round, colour);
        let mark = Stroke::new(1.0, palette.text);
        painter.vline(get_x(0.0), rect.y_range(), mark);
        if let Some((low, high)) = interval {
            let ends = [get_x(low), get_x(high)];
            painter.hline(ends[0]..=ends[1], rect.center().y, mark);
            for end in ends {
                painter.vline(end, rect.shrink2(vec2(0.0, 3.0)).y_range(), mark);
            }
        }
        bar.on_hover_text(
            "Bar: measured gain. Band: from zero to the upper bound of the gain. Line: 90 % interval \
             of the measured gain, with the errors that the two simulations do not share.",
        );
        ui.label(RichText::new(words).size(text_size::SMALL).weak());
    });
}

/// Returns the text with its first letter in upper case.
fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn gain_colour(palette: &ThemePalette, finding: &InsightFinding) -> Color32 {
    match finding.gain {
        InsightGain::Everything => palette.error,
        InsightGain::Unknown => palette.weak_text,
        InsightGain::Time(_) | InsightGain::Memory(_) => palette.text,
    }
}
