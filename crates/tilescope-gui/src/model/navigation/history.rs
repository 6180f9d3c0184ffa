//! Undo and redo of navigation.

use super::navigation_state::NavigationState;

/// The largest number of remembered places.
const MAX_ENTRIES: usize = 200;
/// The seconds for which a place must stay visible to be remembered, so that a drag is one step.
const DWELL_SECONDS: f64 = 0.4;

/// The places visited in a tab.
#[derive(Debug, Default)]
pub(crate) struct NavigationHistory {
    past: Vec<NavigationState>,
    current: Option<NavigationState>,
    future: Vec<NavigationState>,
    /// A new place, and the time in seconds since it became visible.
    candidate: Option<(NavigationState, f64)>,
    /// The time until which changes belong to the restored place, because views settle after undo.
    settling: Option<f64>,
}

impl NavigationHistory {
    /// Records the place visible at a time in seconds. Returns true if it must be called again
    /// soon.
    pub(crate) fn record(&mut self, place: NavigationState, time: f64) -> bool {
        if self.settling.is_some_and(|until| time < until) || self.current.is_none() {
            self.current = Some(place);
            self.candidate = None;
            return self.settling.is_some();
        }
        self.settling = None;
        if self.current.as_ref() == Some(&place) {
            self.candidate = None;
            return false;
        }
        match &self.candidate {
            Some((known, since)) if *known == place => {
                if time - since >= DWELL_SECONDS {
                    self.push(place);
                    return false;
                }
            }
            _ => self.candidate = Some((place, time)),
        }
        true
    }

    fn push(&mut self, place: NavigationState) {
        self.candidate = None;
        self.future.clear();
        self.past.extend(self.current.replace(place));
        let surplus = self.past.len().saturating_sub(MAX_ENTRIES);
        self.past.drain(..surplus);
    }

    /// The place before this one, if any.
    pub(crate) fn undo(&mut self, time: f64) -> Option<NavigationState> {
        // A place that was visible only briefly can still be restored.
        if let Some((place, _)) = self.candidate.take() {
            self.push(place);
        }
        let place = self.past.pop()?;
        self.future.extend(self.current.replace(place.clone()));
        self.settling = Some(time + DWELL_SECONDS);
        Some(place)
    }

    /// The place that undo left, if any.
    pub(crate) fn redo(&mut self, time: f64) -> Option<NavigationState> {
        let place = self.future.pop()?;
        self.past.extend(self.current.replace(place.clone()));
        self.settling = Some(time + DWELL_SECONDS);
        Some(place)
    }

    /// Returns true if there is a place to go back to.
    pub(crate) fn can_undo(&self) -> bool {
        !self.past.is_empty() || self.candidate.is_some()
    }

    /// Returns true if there is a place to go forward to.
    pub(crate) fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::selection::Selection;
    use proptest::prelude::*;
    use tilescope_report::units::TileId;
    use tilescope_test_tiers::cases;

    fn place(name: u8) -> NavigationState {
        let selection = Selection { tiles: vec![TileId(name.into())], ..Selection::default() };
        NavigationState { selection, ..NavigationState::default() }
    }

    fn visit(history: &mut NavigationHistory, name: u8, time: &mut f64) {
        for _ in 0..2 {
            *time += 1.0;
            history.record(place(name), *time);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn undo_then_redo_changes_nothing(
            names in proptest::collection::vec(any::<u8>(), 1..30),
            back in 0usize..30,
        ) {
            let mut history = NavigationHistory::default();
            let mut time = 0.0;
            names.iter().for_each(|name| visit(&mut history, *name, &mut time));
            let end = history.current.clone();
            let undone = (0..back).take_while(|_| history.undo(time).is_some()).count();
            for _ in 0..undone {
                prop_assert!(history.redo(time).is_some());
            }
            prop_assert_eq!(&history.current, &end);
            prop_assert!(!history.can_redo());
        }
    }

    #[test]
    fn a_drag_is_one_undo_step_and_settling_adds_none() {
        let mut history = NavigationHistory::default();
        let mut time = 0.0;
        visit(&mut history, 0, &mut time);
        for name in 1..50 {
            time += 0.01;
            history.record(place(name), time);
        }
        visit(&mut history, 50, &mut time);
        assert_eq!(history.undo(time), Some(place(0)));
        history.record(place(77), time + 0.1);
        assert!(history.can_redo(), "views settle after going back");
        assert_eq!(history.redo(time), Some(place(50)));
    }
}
