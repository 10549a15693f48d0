//! Which indices of one array's axis correspond to which of another's: two selections of equal length, position by
//! position.

use std::collections::VecDeque;

use crate::error::Error;
use crate::plan::error::PlanError;
use crate::selection::axis::AxisSelection;
use crate::unreadable::Unreadable;

/// The most positions that are matched one by one.
const MOST_SINGLE: u64 = 1 << 20;

/// The index at a position of `shown` shows the one at that position of `source`. Both have the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Correspondence {
    /// Indices along the axis that shows.
    pub shown: AxisSelection,
    /// Indices along the axis that is shown.
    pub source: AxisSelection,
}

/// Joins two lists of selections position by position, up to the end of the shorter one.
pub(crate) fn aligned(
    shown: impl IntoIterator<Item = AxisSelection>,
    source: impl IntoIterator<Item = AxisSelection>,
) -> Vec<Correspondence> {
    let queue = |list: &mut dyn Iterator<Item = AxisSelection>| -> VecDeque<AxisSelection> {
        list.filter(|selected| !selected.is_empty()).map(AxisSelection::merged).collect()
    };
    let (mut shown, mut source) = (queue(&mut shown.into_iter()), queue(&mut source.into_iter()));
    let mut joined = Vec::new();
    while let (Some(one), Some(other)) = (shown.pop_front(), source.pop_front()) {
        let mut count = one.len().min(other.len());
        while one.even(count) != count || other.even(count) != count {
            count = other.even(one.even(count)); // falls until both can be split there; 1 always can
        }
        let (head, rest) = one.split(count);
        let (other_head, other_rest) = other.split(count);
        joined.push(Correspondence { shown: head, source: other_head });
        for (queue, rest) in [(&mut shown, rest), (&mut source, other_rest)] {
            rest.into_iter().rev().filter(|part| !part.is_empty()).for_each(|part| queue.push_front(part));
        }
    }
    joined
}

impl Correspondence {
    /// What `self` shows through `inner`. The `shown` indices of `inner` are along the axis of `self.source`.
    pub fn through(self, inner: Self) -> Result<Vec<Self>, PlanError> {
        let (first, stop) =
            (self.source.position_of(inner.shown.start()), self.source.position_of(inner.shown.stop()));
        if first >= stop {
            return Ok(Vec::new());
        }
        if inner.shown.is_contiguous() && inner.source.is_contiguous() {
            let moved = |part: AxisSelection| part.moved(inner.shown.start(), inner.source.start());
            let source = parts(self.source, first, stop).map(moved).collect::<Result<Vec<_>, _>>()?;
            return Ok(aligned(parts(self.shown, first, stop), source));
        }
        if stop - first > MOST_SINGLE {
            return Err(Unreadable::unsupported(
                "so many strides through a virtual array that has strides itself",
            )
            .into());
        }
        let shared = (first..stop).filter_map(|position| {
            let inner_position = inner.shown.position_at(self.source.nth(position))?;
            Some((self.shown.nth(position), inner.source.nth(inner_position)))
        });
        progressions(shared)
    }
}

/// The positions `first .. stop` of a selection, as at most three selections.
pub(crate) fn parts(selected: AxisSelection, first: u64, stop: u64) -> impl Iterator<Item = AxisSelection> {
    let mut queue = VecDeque::from([selected.merged()]);
    let (mut skipped, mut taken) = (first, stop - first);
    std::iter::from_fn(move || {
        while taken > 0 {
            let part = queue.pop_front().filter(|part| !part.is_empty())?;
            let wanted = if skipped > 0 { skipped } else { taken };
            let count = part.even(wanted.min(part.len()));
            let (head, [next, last]) = part.split(count);
            [last, next].into_iter().filter(|part| !part.is_empty()).for_each(|part| queue.push_front(part));
            if skipped == 0 {
                taken -= count;
                return Some(head);
            }
            skipped -= count;
        }
        None
    })
}

/// Pairs of rising indices, as few selections: each continues as long as both strides stay the same.
fn progressions(pairs: impl Iterator<Item = (u64, u64)>) -> Result<Vec<Correspondence>, PlanError> {
    let mut found: Vec<[(u64, u64, u64); 2]> = Vec::new(); // start, stride, count of both
    for (shown, source) in pairs {
        if let Some(last) = found.last_mut() {
            let goes_on = |(start, stride, count): (u64, u64, u64), index: u64| {
                if count == 1 { Some((start, index - start, 2)) } else { None }
                    .or_else(|| (start + stride * count == index).then_some((start, stride, count + 1)))
            };
            if let (Some(one), Some(other)) = (goes_on(last[0], shown), goes_on(last[1], source)) {
                *last = [one, other];
                continue;
            }
        }
        found.push([(shown, 1, 1), (source, 1, 1)]);
    }
    let selected = |(start, stride, count)| AxisSelection::new(0, start, stride, count, 1);
    let pair = |[one, other]: [(u64, u64, u64); 2]| {
        Ok(Correspondence { shown: selected(one)?.merged(), source: selected(other)?.merged() })
    };
    let found: Result<Vec<_>, Error> = found.into_iter().map(pair).collect();
    Ok(found?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pairs(all: &[Correspondence]) -> Vec<(u64, u64)> {
        let each = |one: &Correspondence| {
            assert_eq!(one.shown.len(), one.source.len());
            let one = *one;
            (0..one.shown.len()).map(move |position| (one.shown.nth(position), one.source.nth(position)))
        };
        all.iter().flat_map(each).collect()
    }

    fn selections(reach: u64) -> Vec<AxisSelection> {
        let mut all = Vec::new();
        for (start, stride) in
            [0, 1, 4].into_iter().flat_map(|start| (1..6).map(move |stride| (start, stride)))
        {
            for (block, count) in (1..=stride).flat_map(|block| (1..7).map(move |count| (block, count))) {
                all.extend(AxisSelection::new(0, start, stride, count, block).ok());
            }
        }
        all.retain(|selected| selected.stop() <= reach);
        all
    }

    #[test]
    fn whatever_is_aligned_keeps_its_positions() {
        for (one, other) in
            selections(20).iter().flat_map(|one| selections(20).into_iter().map(move |o| (*one, o)))
        {
            let joined = pairs(&aligned([one], [other]));
            let count = one.len().min(other.len());
            let expected: Vec<_> =
                (0..count).map(|position| (one.nth(position), other.nth(position))).collect();
            assert_eq!(joined, expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn through_another_correspondence_is_position_by_position() {
        let all = selections(12);
        let pair = |one: &AxisSelection, other: &AxisSelection| {
            (one.len() == other.len()).then_some(Correspondence { shown: *one, source: *other })
        };
        let corresponding: Vec<Correspondence> =
            all.iter().flat_map(|one| all.iter().filter_map(|other| pair(one, other))).step_by(7).collect();
        for (outer, inner) in corresponding.iter().flat_map(|o| corresponding.iter().map(move |i| (*o, *i))) {
            let found = pairs(&outer.through(inner).unwrap());
            let expected: Vec<_> = pairs(&[outer])
                .into_iter()
                .filter_map(|(shown, index)| Some((shown, inner.source.nth(inner.shown.position_at(index)?))))
                .collect();
            assert_eq!(found, expected, "{outer:?} {inner:?}");
        }
    }
}
