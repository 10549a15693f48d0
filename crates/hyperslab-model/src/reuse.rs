//! How far apart the touches of a chunk are: with these numbers, one pass over a trace answers for caches of any size.

use std::collections::HashMap;

/// For each touch, how many other chunks were touched since the last touch of its chunk; -1 for the first touch of a
/// chunk. A cache of `n` chunks that forgets the one that was used longest ago still has a chunk if this is below `n`.
pub fn reuse_distances(chunks: &[i64]) -> Vec<i64> {
    let mut last: HashMap<i64, usize> = HashMap::new();
    let mut latest = Latest::new(chunks.len());
    let mut distinct = 0;
    let distance = |(touch, &chunk)| {
        let found = match last.insert(chunk, touch) {
            None => {
                distinct += 1;
                -1
            }
            // Each chunk has one latest touch; those of the chunks since then come after this one.
            Some(before) => {
                let since = distinct - latest.up_to(before);
                latest.add(before, -1);
                since
            }
        };
        latest.add(touch, 1);
        found
    };
    chunks.iter().enumerate().map(distance).collect()
}

/// Which touches are the latest ones of their chunks, as sums over ranges (a Fenwick tree).
struct Latest(Vec<i64>);

impl Latest {
    fn new(count: usize) -> Self {
        Self(vec![0; count + 1])
    }

    fn add(&mut self, touch: usize, change: i64) {
        let mut place = touch + 1;
        while let Some(sum) = self.0.get_mut(place) {
            *sum += change;
            place += place & place.wrapping_neg();
        }
    }

    /// How many there are up to a touch, with itself.
    fn up_to(&self, touch: usize) -> i64 {
        let (mut place, mut count) = (touch + 1, 0);
        while place > 0 {
            count += self.0[place];
            place &= place - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_chunks_since_the_last_touch() {
        assert_eq!(reuse_distances(&[]), []);
        assert_eq!(reuse_distances(&[7, 7, 8, 9, 8, 7, 7]), [-1, 0, -1, -1, 1, 2, 0]);
    }
}
