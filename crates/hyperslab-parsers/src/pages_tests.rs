//! What is fetched on the guess that structures lie together, and what is not.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::sync::Mutex;

use super::{Error, FetchError, Pages, Policy, Source, TOGETHER_NBYTES};
use hyperslab_core::ByteRange;

/// A file of zeros that notes what is asked for.
struct Zeros {
    length: u64,
    seen: Mutex<Vec<ByteRange>>,
}

impl Source for Zeros {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        self.seen.lock().unwrap().extend_from_slice(ranges);
        Ok(ranges.iter().map(|range| vec![0; usize::try_from(range.length).unwrap()]).collect())
    }
}

/// What a second round fetches of a file of a TB, in which structures are expected and one is wanted.
fn second_round(expected: &[(u64, u64)], wanted: u64) -> Vec<(u64, u64)> {
    let zeros = Zeros { length: 1 << 40, seen: Mutex::default() };
    let mut pages = Pages::new(&zeros, Policy::REMOTE);
    assert!(pages.fetch().unwrap());
    zeros.seen.lock().unwrap().clear();
    for &(offset, length) in expected {
        pages.expect(ByteRange { offset, length });
    }
    assert!(matches!(pages.bytes("a structure", wanted, 100), Err(Error::NotHeld { .. })));
    assert!(pages.fetch().unwrap());
    zeros.seen.into_inner().unwrap().iter().map(|range| (range.offset, range.length)).collect()
}

const HEAD: u64 = 512 << 10;
const MIB: u64 = 1 << 20;

#[test]
fn structures_that_follow_each_other_come_in_one_request_without_the_end_of_the_file() {
    let expected = [(HEAD, 3 * MIB), (HEAD + 3 * MIB, 3 * MIB), (HEAD + 6 * MIB, 3 * MIB)];
    assert_eq!(second_round(&expected, HEAD), [(HEAD, 9 * MIB)]);
}

#[test]
fn structures_that_lie_elsewhere_come_by_themselves() {
    let expected = [(HEAD, 3 * MIB), (HEAD + 60 * MIB, 3 * MIB)];
    let far = HEAD + 60 * MIB;
    assert_eq!(second_round(&expected, far), [(far, 32 << 10), ((1 << 40) - HEAD, HEAD)]);
}

#[test]
fn a_file_that_promises_too_much_gets_little() {
    let last = second_round(&[(HEAD, MIB), (HEAD + MIB, 1 << 39)], HEAD);
    assert_eq!(last, [(HEAD, 5 * MIB)]);
    let all = second_round(&[(HEAD, 1 << 38), (HEAD + (1 << 38), 1 << 38)], HEAD);
    assert!(all.iter().map(|(_, length)| length).sum::<u64>() < TOGETHER_NBYTES);
}
