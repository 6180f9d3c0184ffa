//! Pictures as SVG: shapes with the classes of the page's style sheet, so that they follow its theme.

pub(crate) mod axis;
pub(crate) mod figure;
pub(crate) mod standalone;

use crate::names::{escaped, shown};
use std::fmt::{self, Write};

/// Height of letters, and an upper bound on their mean width.
const LETTER_WIDTH: f64 = 6.4;
/// The width below which a shape has no text.
const LEAST_WORDS: f64 = 18.0;

/// A coordinate in pixels, rounded to a tenth: more is not visible.
#[derive(Clone, Copy)]
pub(crate) struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if !tenths.is_finite() {
            return f.write_str("0");
        }
        if tenths % 10.0 == 0.0 {
            write!(f, "{}", (tenths / 10.0) as i64)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

/// A rectangle of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PxRect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// The alignment of text at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Draws a coloured rectangle.
    pub(crate) fn rect(&mut self, rect: PxRect, colour: &str) {
        self.rect_with(rect, colour, "");
    }

    /// Draws a coloured rectangle with a tooltip.
    pub(crate) fn rect_with(&mut self, rect: PxRect, colour: &str, title: &str) {
        let PxRect { x, y, width, height } = rect;
        let [x, y, width, height] = [x, y, width.max(0.1), height].map(Px);
        // Writing to a string cannot fail.
        let _ = write!(
            self.body,
            r#"<rect class="f-{colour}" x="{x}" y="{y}" width="{width}" height="{height}""#
        );
        self.close_with(title, "rect");
    }

    fn close_with(&mut self, title: &str, element: &str) {
        let _ = match title {
            "" => write!(self.body, "/>"),
            title => write!(self.body, "><title>{}</title></{element}>", escaped(title)),
        };
    }

    /// Draws a coloured dot with a tooltip.
    pub(crate) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str, title: &str) {
        let [x, y, radius] = [x, y, radius].map(Px);
        let _ =
            write!(self.body, r#"<circle class="f-{colour} dot" cx="{x}" cy="{y}" r="{radius}""#);
        self.close_with(title, "circle");
    }

    /// Draws a coloured polygon around a position, with a tooltip.
    pub(crate) fn shape(
        &mut self,
        (x, y): (f64, f64),
        corners: &[(f64, f64)],
        colour: &str,
        title: &str,
    ) {
        let corners = corners.iter().map(|(dx, dy)| format!("{},{}", Px(x + dx), Px(y + dy)));
        let corners = corners.collect::<Vec<_>>().join(" ");
        let _ = write!(self.body, r#"<polygon class="f-{colour} dot" points="{corners}""#);
        self.close_with(title, "polygon");
    }

    /// Draws a straight line; `class` gives its style.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Px);
        let _ =
            write!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// Draws a path; `class` gives its style.
    pub(crate) fn path(&mut self, data: &str, class: &str) {
        if !data.is_empty() {
            let _ = write!(self.body, r#"<path class="{class}" d="{data}"/>"#);
        }
    }

    /// Draws vertical strokes of one width, as a path.
    pub(crate) fn strokes(&mut self, data: &str, width: f64, colour: &str) {
        if !data.is_empty() {
            let width = Px(width);
            let _ = write!(
                self.body,
                r#"<path class="s-{colour} crisp" stroke-width="{width}" d="{data}"/>"#
            );
        }
    }

    /// Writes text at a position.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " mid",
            Anchor::End => " end",
        };
        let [x, y] = [x, y].map(Px);
        let text = escaped(text);
        let _ = write!(self.body, r#"<text class="{class}{anchor}" x="{x}" y="{y}">{text}</text>"#);
    }

    /// Writes text that is cut to a width, with the whole text as a tooltip.
    pub(crate) fn fitted_text(
        &mut self,
        (x, y): (f64, f64),
        (anchor, class): (Anchor, &str),
        text: &str,
        room: f64,
    ) {
        match fitted(text, room) {
            Some(cut) if cut == text => self.text((x, y), anchor, class, text),
            Some(cut) => {
                let title = escaped(&shown(text));
                let _ = write!(self.body, "<g><title>{title}</title>");
                self.text((x, y), anchor, class, &cut);
                self.body.push_str("</g>");
            }
            None => {}
        }
    }

    /// Writes the text of a bar, if it has space.
    pub(crate) fn bar_text(&mut self, rect: PxRect, colour: &str, text: &str) {
        if rect.width < LEAST_WORDS {
            return;
        }
        let class = format!("i-{colour} small");
        if let Some(cut) = fitted(text, rect.width - 6.0) {
            let at = (rect.x + 3.0, rect.y + rect.height / 2.0 + 3.8);
            self.text(at, Anchor::Start, &class, &cut);
        }
    }

    /// Writes text that starts at a position and is rotated around it by some degrees.
    pub(crate) fn turned_text(&mut self, (x, y): (f64, f64), turn: f64, class: &str, text: &str) {
        let [x, y, turn] = [x, y, turn].map(Px);
        let _ = write!(self.body, "<g transform=\"translate({x} {y}) rotate({turn})\">");
        self.text((0.0, 0.0), Anchor::Start, class, text);
        self.body.push_str("</g>");
    }

    /// Draws a background on which text is readable.
    pub(crate) fn ground(&mut self, PxRect { x, y, width, height }: PxRect) {
        let [x, y, width, height] = [x, y, width, height].map(Px);
        let _ = write!(
            self.body,
            r#"<rect class="f-page" fill-opacity=".8" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        );
    }

    /// Adds any other element.
    pub(crate) fn push(&mut self, element: &str) {
        self.body.push_str(element);
    }

    /// The whole picture, with a description.
    pub(crate) fn finish(self, label: &str) -> String {
        let [width, height] = [self.width, self.height].map(Px);
        let label = escaped(label);
        format!(
            r#"<svg class="wide" role="img" aria-label="{label}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">{}</svg>"#,
            self.body
        )
    }
}

/// As many letters as fit, with an ellipsis; `None` if not even two do.
fn fitted(text: &str, room: f64) -> Option<String> {
    let most = (room / LETTER_WIDTH).floor().max(0.0) as usize;
    // No name is longer than the widest picture.
    let letters = text.chars().take(most + 1).count();
    if letters <= most {
        return Some(text.to_owned());
    }
    if most >= 3 {
        let cut: String = text.chars().take(most - 1).collect();
        Some(format!("{}…", cut.trim_end()))
    } else {
        None
    }
}

/// An estimate of the width of text.
pub(crate) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_one_decimal() {
        let cases = [(1.0, "1"), (1.04, "1"), (-2.25, "-2.3"), (0.06, "0.1"), (f64::NAN, "0")];
        for (value, text) in cases {
            assert_eq!(Px(value).to_string(), text);
        }
    }

    #[test]
    fn text_fits_or_is_cut_or_left_out() {
        assert_eq!(fitted("conv", 100.0).as_deref(), Some("conv"));
        assert_eq!(fitted("convolution", 45.0).as_deref(), Some("convol…"));
        assert_eq!(fitted("conv", 10.0), None);
    }
}
