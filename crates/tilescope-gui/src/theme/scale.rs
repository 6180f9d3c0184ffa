//! The sizes of text and of gaps: few of each, for a uniform appearance. Views and widgets contain
//! no such numbers themselves; `tests/headless/layers.rs` checks that.

/// Text sizes in points.
pub(crate) mod text_size {
    /// Symbols in the lines of a tree.
    pub(crate) const SIGN: f32 = 9.0;
    /// Ticks of axes, labels on bars, and hints below other text.
    pub(crate) const CAPTION: f32 = 11.0;
    /// Titles of columns and figures, legends, totals.
    pub(crate) const SMALL: f32 = 12.0;
    /// All other text.
    pub(crate) const BODY: f32 = 13.0;
    /// Headings of sections of a page.
    pub(crate) const SUBHEADING: f32 = 15.0;
    /// Headings of dialogs, and highlighted figures.
    pub(crate) const HEADING: f32 = 17.0;
    /// The heading of a page.
    pub(crate) const TITLE: f32 = 19.0;
    /// The name of the program on its home screen.
    pub(crate) const DISPLAY: f32 = 24.0;
}

/// Gaps in points.
pub(crate) mod spacing {
    /// The gap between lines that belong together.
    pub(crate) const XXS: f32 = 2.0;
    /// The gap between a mark and its text, and below a row of controls.
    pub(crate) const XS: f32 = 4.0;
    /// The gap between controls, and above a row of them.
    pub(crate) const S: f32 = 6.0;
    /// The gap between groups of lines.
    pub(crate) const M: f32 = 8.0;
    /// The gap between panels, and from the edge of a panel.
    pub(crate) const L: f32 = 14.0;
    /// The gap between columns of details.
    pub(crate) const XL: f32 = 24.0;
    /// The gap between parts of a page.
    pub(crate) const XXL: f32 = 32.0;
    /// The indentation of each level of a tree.
    pub(crate) const INDENT: f32 = 16.0;
}
