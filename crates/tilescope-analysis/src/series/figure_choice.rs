//! Selection of the figures of a series.

use crate::gates::{figure_paths, named_figure, nearest_figure};

/// The default figures: the most important ones for comparing runs.
const FIRST_FIGURES: [&str; 5] = [
    "execution.total_cycles",
    "execution.samples_per_second",
    "limits.utilisation",
    "memory.max_tile_including_gaps",
    "memory.total_excluding_gaps",
];

/// Error for an unknown name of a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown figure {name:?}; did you mean {near:?}?")]
pub struct UnknownFigureError {
    name: String,
    near: String,
}

/// Figures by path, with `*` for any one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FigureChoice {
    All,
    Paths(Vec<String>),
}

impl FigureChoice {
    /// The default figures.
    pub fn first() -> Self {
        Self::Paths(FIRST_FIGURES.map(str::to_owned).to_vec())
    }

    /// Parses names of figures: dotted paths of `summary --json`, or the short names of gates.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, UnknownFigureError> {
        let path = |name: &str| match named_figure(name) {
            Some(figure) => Ok(figure.path().to_owned()),
            None if name.contains('*') && figure_paths().any(|path| overlaps(name, path)) => {
                Ok(name.to_owned())
            }
            None => {
                let near = nearest_figure(name);
                Err(UnknownFigureError { name: name.to_owned(), near })
            }
        };
        Ok(Self::Paths(names.map(path).collect::<Result<_, _>>()?))
    }

    /// True if a figure is chosen.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Paths(chosen) => chosen.iter().any(|choice| {
                same_parts(choice, path, |chosen, part| chosen == "*" || chosen == part)
            }),
        }
    }
}

/// True if a choice can match figures of a listed path.
fn overlaps(choice: &str, listed: &str) -> bool {
    same_parts(choice, listed, |chosen, part| {
        chosen == "*" || chosen == part || part == "*" || part.starts_with('{')
    })
}

fn same_parts(choice: &str, path: &str, same: impl Fn(&str, &str) -> bool) -> bool {
    let chosen = choice.split('.');
    let parts = path.split('.');
    chosen.clone().count() == parts.clone().count()
        && chosen.zip(parts).all(|(chosen, part)| same(chosen, part))
}
