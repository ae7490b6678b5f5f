//! Finds out in constant memory that a list goes round in a circle: a store that repeats its pages has no end of them.

use std::io;

/// One of the keys is kept, each for twice as long as the one before: in a circle, it comes again (Brent's algorithm).
#[derive(Default)]
pub(super) struct Circle {
    kept: Option<String>,
    /// Keys since then, and for how many it is kept.
    behind: u64,
    keeps: u64,
}

impl Circle {
    /// Takes the next key.
    ///
    /// # Errors
    /// The key was listed before.
    pub(super) fn refuse(&mut self, key: &str) -> io::Result<()> {
        if self.kept.as_deref() == Some(key) {
            return Err(io::Error::other(format!(
                "the store lists '{key}' twice: it repeats pages of its list of objects"
            )));
        }
        if self.behind == self.keeps {
            self.kept = Some(key.to_owned());
            self.keeps = (self.keeps * 2).max(1);
            self.behind = 0;
        }
        self.behind += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many keys of a list are taken.
    fn taken(keys: impl Iterator<Item = u32>) -> usize {
        let mut circle = Circle::default();
        keys.map(|key| key.to_string())
            .take_while(|key| circle.refuse(key).is_ok())
            .take(100_000)
            .count()
    }

    #[test]
    fn a_list_that_goes_round_in_a_circle_of_any_length_ends() {
        assert_eq!(taken(0..5_000), 5_000);
        for (before, length) in [(0, 1), (0, 2), (1, 3), (1_000, 1), (7, 1_000), (4_000, 999)] {
            let circle = (before..before + length).cycle();
            let taken = taken((0..before).chain(circle));
            let most = 4 * (before + length) as usize + 4;
            assert!(taken <= most, "{before}, {length}: {taken}");
        }
    }
}
