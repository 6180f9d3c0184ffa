//! A figure as an SVG file of its own: with its title, its legend and its colours.

use super::figure::{drawn, legend};
use super::{Anchor, PxRect, Svg, width_of};
use crate::colours::{COLOURS, PageColour};
use crate::names::{prose, shown};
use crate::page::PICTURE_STYLE;
use std::fmt::Write;
use tilescope_analysis::figures::Figure;

/// Rules of the picture are below this class, so that they leave a page alone which it is part of.
const CLASS: &str = "tilescope-figure";

const MARGIN: f64 = 12.0;
/// Height of the title, and of a line of the legend.
const TITLE: f64 = 30.0;
const LINE: f64 = 20.0;
/// A square of the legend, and the space after an entry.
const SQUARE: f64 = 11.0;
const GAP: f64 = 18.0;
/// Width of a figure in which nothing is drawn.
const EMPTY_WIDTH: f64 = 640.0;

/// A figure as the pages show it, as an SVG that needs no style sheet beside it; a sentence where
/// there is nothing to draw.
pub fn figure_svg(figure: &Figure, about: &str, is_dark: bool) -> String {
    let marks = if figure.is_empty() { empty(figure) } else { drawn(figure) };
    let width = marks.width + 2.0 * MARGIN;
    let top = MARGIN + TITLE;
    let mut picture = Svg::new(width, 0.0);
    picture.text((MARGIN, MARGIN + 16.0), Anchor::Start, "strong", &shown(&figure.title));
    picture.push(&format!("<g transform=\"translate({MARGIN} {top})\">{}</g>", marks.body));
    let mut y = top + marks.height;
    if !figure.is_empty() {
        y = draw_legend(&mut picture, figure, y);
    }
    picture.height = y + MARGIN;
    whole(&picture, &shown(&format!("{}: {about}", figure.title)), is_dark)
}

/// The reason why there is nothing to draw.
fn empty(figure: &Figure) -> Svg {
    let reason = if figure.note.is_empty() { "Nothing to draw." } else { &figure.note };
    let mut svg = Svg::new(EMPTY_WIDTH, LINE);
    svg.fitted_text((0.0, 14.0), (Anchor::Start, "weak"), &prose(reason), EMPTY_WIDTH);
    svg
}

/// Draws what colours mean, in as many lines as that takes; the place below.
fn draw_legend(picture: &mut Svg, figure: &Figure, top: f64) -> f64 {
    let entries = legend(figure);
    if entries.is_empty() {
        return top;
    }
    let mut x = MARGIN;
    let mut y = top + LINE / 2.0;
    for entry in entries {
        let width = SQUARE + 6.0 + width_of(&entry.name) + GAP;
        if x > MARGIN && x + width > picture.width - MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        let square = PxRect { x, y, width: SQUARE, height: SQUARE };
        picture.rect(square, entry.colour);
        let place = (x + SQUARE + 6.0, y + SQUARE - 1.0);
        picture.text(place, Anchor::Start, "label", &entry.name);
        x += width;
    }
    y + LINE
}

/// The file.
fn whole(picture: &Svg, label: &str, is_dark: bool) -> String {
    let width = super::Px(picture.width);
    let height = super::Px(picture.height);
    let style = style_sheet(&picture.body, is_dark);
    let label = crate::names::escaped(label);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{CLASS}\" role=\"img\" \
         aria-label=\"{label}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\"><style>{style}</style>\
         <rect class=\"f-page\" width=\"100%\" height=\"100%\"/>{}</svg>",
        picture.body
    )
}

/// The style rules that a picture uses, with colours in place of variables, because not every
/// program that draws SVG supports these.
fn style_sheet(body: &str, is_dark: bool) -> String {
    let mut rules = String::new();
    for rule in PICTURE_STYLE.lines() {
        let Some((selectors, declarations)) = rule.split_once('{') else { continue };
        for selector in selectors.split(',') {
            let selector = selector.trim_start_matches("svg ");
            // Writing into a string cannot fail.
            let _ = writeln!(rules, ".{CLASS} {selector}{{{declarations}");
        }
    }
    for PageColour { name, .. } in COLOURS {
        for (prefix, property) in [("f", "fill"), ("s", "stroke")] {
            let class = format!("{prefix}-{name}");
            if *name == "page" || has_class(body, &class) {
                let _ = writeln!(rules, ".{CLASS} .{class}{{{property}:var(--{name})}}");
            }
        }
    }
    for PageColour { name, light, dark } in COLOURS {
        let colour = if is_dark { dark } else { light };
        rules = rules.replace(&format!("var(--{name})"), &format!("#{colour:06x}"));
    }
    rules
}

/// Returns true if an element has a class, alone, first or last of several.
fn has_class(body: &str, class: &str) -> bool {
    body.contains(&format!("\"{class}\""))
        || body.contains(&format!("\"{class} "))
        || body.contains(&format!(" {class}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::topics::TOPICS;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::Report;

    #[test]
    fn every_figure_is_a_picture_by_itself() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = ReportBuilder::new(2, 8).write(directory.path()).expect("written");
        let report = Report::open(path).expect("opened");
        let mut count = 0;
        for figure in TOPICS.iter().flat_map(|topic| topic.figures) {
            let read = (figure.read)(&report).expect("a figure");
            for is_dark in [false, true] {
                let svg = figure_svg(&read, figure.about, is_dark);
                assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"), "{svg}");
                assert!(!svg.contains("var(--") && svg.contains(".f-page{fill:#"), "{svg}");
                assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
                count += 1;
            }
        }
        assert!(count >= 6, "{count}");
    }
}
