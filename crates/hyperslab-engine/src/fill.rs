//! Elements that were never written.

use hyperslab_core::Fill;

/// Fills `out`, a whole number of elements, with a fill value.
pub(crate) fn fill(out: &mut [u8], value: &Fill) {
    match value {
        Fill::Value(element) if element.iter().any(|&byte| byte != 0) => repeat(out, element),
        _ => out.fill(0),
    }
}

/// Repeats one element. Each copy takes all that is written so far, so it is twice as long as the last.
fn repeat(out: &mut [u8], element: &[u8]) {
    let mut done = element.len().min(out.len());
    out[..done].copy_from_slice(&element[..done]);
    while done < out.len() {
        let (written, rest) = out.split_at_mut(done);
        let count = done.min(rest.len());
        rest[..count].copy_from_slice(&written[..count]);
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_the_value() {
        let mut out = [9; 15];
        fill(&mut out, &Fill::Value(vec![1, 2, 3]));
        assert_eq!(out, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
        fill(&mut out, &Fill::Undefined);
        assert_eq!(out, [0; 15]);
    }
}
