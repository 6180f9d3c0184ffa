//! The sizes of text and the gaps between things: a few of each, so that what is alike looks alike.
//! Views and widgets write no such number themselves; `tests/headless/layers.rs` checks that.

/// Sizes of text, in points.
pub(crate) mod text_size {
    /// Signs in the lines of a tree.
    pub(crate) const SIGN: f32 = 9.0;
    /// Ticks of axes, labels on bars, hints below other text.
    pub(crate) const CAPTION: f32 = 11.0;
    /// Titles of columns and figures, legends, totals.
    pub(crate) const SMALL: f32 = 12.0;
    /// Everything else.
    pub(crate) const BODY: f32 = 13.0;
    /// Heads of sections of a page.
    pub(crate) const SUBHEADING: f32 = 15.0;
    /// Heads of dialogs, and figures that stand out.
    pub(crate) const HEADING: f32 = 17.0;
    /// The head of a page.
    pub(crate) const TITLE: f32 = 19.0;
    /// The name of the program on its home screen.
    pub(crate) const DISPLAY: f32 = 24.0;
}

/// Gaps, in points.
pub(crate) mod spacing {
    /// Between lines that belong together.
    pub(crate) const XXS: f32 = 2.0;
    /// Between a mark and its words, below a row of controls.
    pub(crate) const XS: f32 = 4.0;
    /// Between controls, above a row of them.
    pub(crate) const S: f32 = 6.0;
    /// Between groups of lines.
    pub(crate) const M: f32 = 8.0;
    /// Between panels, and from the edge of a panel.
    pub(crate) const L: f32 = 14.0;
    /// Between columns of details.
    pub(crate) const XL: f32 = 24.0;
    /// Between parts of a page.
    pub(crate) const XXL: f32 = 32.0;
    /// What a line of a tree is indented by for each level.
    pub(crate) const INDENT: f32 = 16.0;
}
