//! The list of tabs and the visible one.

/// The tabs in the order of opening. One of them is visible, or none if the home screen is.
#[derive(Debug)]
pub(crate) struct TabList<T> {
    tabs: Vec<T>,
    /// Always less than the number of tabs.
    shown: Option<usize>,
}

impl<T> Default for TabList<T> {
    fn default() -> Self {
        Self { tabs: Vec::new(), shown: None }
    }
}

impl<T> TabList<T> {
    pub(crate) fn len(&self) -> usize {
        self.tabs.len()
    }

    /// All tabs, visible or not.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.tabs.iter()
    }

    /// The index of the visible tab.
    pub(crate) fn shown_index(&self) -> Option<usize> {
        self.shown
    }

    /// The visible tab, if any.
    pub(crate) fn shown(&self) -> Option<&T> {
        self.tabs.get(self.shown?)
    }

    /// The visible tab for changes, if any.
    pub(crate) fn shown_mut(&mut self) -> Option<&mut T> {
        self.tabs.get_mut(self.shown?)
    }

    /// Adds a tab at the end and shows it.
    pub(crate) fn open(&mut self, tab: T) {
        self.shown = Some(self.tabs.len());
        self.tabs.push(tab);
    }

    /// Shows a tab, or the home screen for `None`. A missing tab is ignored. Returns true if
    /// anything changed.
    pub(crate) fn show(&mut self, index: Option<usize>) -> bool {
        if index == self.shown || index.is_some_and(|index| index >= self.tabs.len()) {
            return false;
        }
        self.shown = index;
        true
    }

    /// The index of the next tab, or of the previous one. The list wraps around at its ends.
    pub(crate) fn neighbour(&self, forwards: bool) -> Option<usize> {
        let count = self.tabs.len();
        match (self.shown, forwards) {
            (_, _) if count == 0 => None,
            (None, true) => Some(0),
            (None, false) => Some(count - 1),
            (Some(at), true) => Some((at + 1) % count),
            (Some(at), false) => Some((at + count - 1) % count),
        }
    }

    /// Closes a tab. If it was visible, its right neighbour becomes visible, or the last tab, or
    /// the home screen if no tab is left.
    pub(crate) fn close(&mut self, index: usize) -> Option<T> {
        if index >= self.tabs.len() {
            return None;
        }
        let closed = self.tabs.remove(index);
        self.shown = match self.shown {
            Some(shown) if shown > index => Some(shown - 1),
            Some(shown) if shown == index => {
                self.tabs.len().checked_sub(1).map(|last| index.min(last))
            }
            shown => shown,
        };
        debug_assert!(self.shown.is_none_or(|shown| shown < self.tabs.len()), "a tab is shown");
        Some(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn tabs(names: &str, shown: Option<usize>) -> TabList<char> {
        TabList { tabs: names.chars().collect(), shown }
    }

    #[test]
    fn a_neighbour_is_shown_after_closing() {
        let close = |names, shown, index| {
            let mut tabs = tabs(names, shown);
            tabs.close(index);
            tabs.shown().copied()
        };
        assert_eq!(close("abc", Some(1), 1), Some('c'));
        assert_eq!(close("abc", Some(2), 2), Some('b'));
        assert_eq!(close("a", Some(0), 0), None);
        assert_eq!(close("abc", Some(2), 0), Some('c'), "the shown tab stays shown");
        assert_eq!(close("abc", None, 0), None, "the home screen stays shown");
        assert_eq!(close("abc", Some(0), 7), Some('a'), "there is no such tab");
    }

    #[test]
    fn neighbours_wrap_around_through_the_home_screen() {
        assert_eq!(tabs("abc", Some(2)).neighbour(true), Some(0));
        assert_eq!(tabs("abc", Some(0)).neighbour(false), Some(2));
        assert_eq!(tabs("abc", None).neighbour(true), Some(0));
        assert_eq!(tabs("abc", None).neighbour(false), Some(2));
        assert_eq!(tabs("", None).neighbour(true), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn the_visible_tab_exists(steps in proptest::collection::vec((0u8..4, 0usize..5), 0..40)) {
            let mut tabs = TabList::default();
            for (step, index) in steps {
                match step {
                    0 => tabs.open(index),
                    1 => drop(tabs.close(index)),
                    2 => drop(tabs.show(Some(index))),
                    _ => drop(tabs.show(None)),
                }
                prop_assert_eq!(tabs.shown_index().is_some(), tabs.shown().is_some());
            }
        }
    }
}
