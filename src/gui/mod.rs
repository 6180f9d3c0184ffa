//! The desktop app and the pictures it can draw without a display.

mod fonts;
pub mod paint;
pub mod theme;
pub mod worker;
