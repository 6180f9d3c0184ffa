//! Undo and redo of what is looked at.

use super::place::Place;

/// Most places that are remembered.
const MOST: usize = 200;
/// Seconds for which a place must be looked at to be remembered: a drag is one step.
const REST: f64 = 0.4;

/// Places that were looked at.
#[derive(Debug, Default)]
pub struct History {
    past: Vec<Place>,
    now: Option<Place>,
    future: Vec<Place>,
    /// A place that is new, and since when.
    fresh: Option<(Place, f64)>,
    /// Until when changes belong to the place that was gone back to: views settle after it.
    settling: Option<f64>,
}

impl History {
    /// Takes notice of the place that is shown at a time in seconds; whether it has to be asked
    /// again soon.
    pub(crate) fn notice(&mut self, place: Place, time: f64) -> bool {
        if self.settling.is_some_and(|until| time < until) || self.now.is_none() {
            self.now = Some(place);
            self.fresh = None;
            return self.settling.is_some();
        }
        self.settling = None;
        if self.now.as_ref() == Some(&place) {
            self.fresh = None;
            return false;
        }
        match &self.fresh {
            Some((known, since)) if *known == place => {
                if time - since >= REST {
                    self.arrive(place);
                    return false;
                }
            }
            _ => self.fresh = Some((place, time)),
        }
        true
    }

    fn arrive(&mut self, place: Place) {
        self.fresh = None;
        self.future.clear();
        self.past.extend(self.now.replace(place));
        let surplus = self.past.len().saturating_sub(MOST);
        self.past.drain(..surplus);
    }

    /// The place before this one, if there is one.
    pub(crate) fn undo(&mut self, time: f64) -> Option<Place> {
        // What was not looked at for long is a place to come back to all the same.
        if let Some((place, _)) = self.fresh.take() {
            self.arrive(place);
        }
        let place = self.past.pop()?;
        self.future.extend(self.now.replace(place.clone()));
        self.settling = Some(time + REST);
        Some(place)
    }

    /// The place that undo came from, if it did.
    pub(crate) fn redo(&mut self, time: f64) -> Option<Place> {
        let place = self.future.pop()?;
        self.past.extend(self.now.replace(place.clone()));
        self.settling = Some(time + REST);
        Some(place)
    }

    /// Whether there is a place to go back to.
    pub(crate) fn can_undo(&self) -> bool {
        !self.past.is_empty() || self.fresh.is_some()
    }

    /// Whether there is a place to go forward to.
    pub(crate) fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::selection::Selection;
    use proptest::prelude::*;

    fn place(name: u8) -> Place {
        let selection = Selection { tiles: vec![name.into()], ..Selection::default() };
        Place { selection, ..Place::default() }
    }

    fn visit(history: &mut History, name: u8, time: &mut f64) {
        for _ in 0..2 {
            *time += 1.0;
            history.notice(place(name), *time);
        }
    }

    proptest! {
        #[test]
        fn undo_then_redo_changes_nothing(
            names in proptest::collection::vec(any::<u8>(), 1..30),
            back in 0usize..30,
        ) {
            let (mut history, mut time) = (History::default(), 0.0);
            names.iter().for_each(|name| visit(&mut history, *name, &mut time));
            let end = history.now.clone();
            let undone = (0..back).take_while(|_| history.undo(time).is_some()).count();
            for _ in 0..undone {
                prop_assert!(history.redo(time).is_some());
            }
            prop_assert_eq!(&history.now, &end);
            prop_assert!(!history.can_redo());
        }
    }

    #[test]
    fn a_drag_is_one_step_and_settling_is_none() {
        let (mut history, mut time) = (History::default(), 0.0);
        visit(&mut history, 0, &mut time);
        for name in 1..50 {
            time += 0.01;
            history.notice(place(name), time);
        }
        visit(&mut history, 50, &mut time);
        assert_eq!(history.undo(time), Some(place(0)));
        history.notice(place(77), time + 0.1);
        assert!(history.can_redo(), "views settle after going back");
        assert_eq!(history.redo(time), Some(place(50)));
    }
}
