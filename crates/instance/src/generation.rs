//! The generations of a medium.
//!
//! INIT overwrites a medium and keeps the identity of its media set, so copies from before and after that have it in common,
//! and no set. The first set tells them apart: later ones only stand behind it.

use windlass_base::Guid;

/// Files of one media set that belong together.
#[derive(Debug)]
pub(crate) struct Generation<T> {
    pub(crate) files: Vec<T>,
    /// Within what the positions of its sets give their order; `None` if they give none.
    pub(crate) order: Option<Guid>,
}

/// What a file shows: its family, and the identities of its sets from the first; NIL where one is damaged.
pub(crate) type Shown = (u16, Vec<Guid>);

/// The generations among the files of a media set: each that has every family stands for itself. What is left may be from before and
/// after an overwrite that was interrupted, so it is not told apart. Of one generation, all files stay together.
pub(crate) fn split<T>(
    media_set: Guid,
    family_count: u16,
    files: Vec<T>,
    shown: impl Fn(&T) -> Shown,
) -> Vec<Generation<T>> {
    let shown: Vec<Shown> = files.iter().map(shown).collect();
    let mut firsts: Vec<Guid> = shown.iter().filter_map(first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let is_alone = firsts.len() < 2;
    firsts.retain(|own| {
        let has = |family: u16| {
            shown
                .iter()
                .any(|one| one.0 == family && first(one) == Some(*own))
        };
        (1..=family_count).all(has)
    });
    if is_alone || firsts.is_empty() {
        let order = Some(media_set);
        return vec![Generation { files, order }];
    }
    let mut generations: Vec<Generation<T>> = Vec::new();
    for (file, own) in files.into_iter().zip(&shown) {
        let order = generation_of(own, &firsts, &shown);
        let mut known = generations.iter_mut();
        match known.find(|generation| generation.order == order) {
            Some(generation) => generation.files.push(file),
            None => generations.push(Generation {
                files: vec![file],
                order,
            }),
        }
    }
    generations
}

/// The first set of a file, if it can be read.
fn first((_, sets): &Shown) -> Option<Guid> {
    sets.first().copied().filter(|first| *first != Guid::NIL)
}

/// That of `firsts` to whose generation a file belongs. If its own first set is damaged, another one may tell.
fn generation_of(own: &Shown, firsts: &[Guid], shown: &[Shown]) -> Option<Guid> {
    if let Some(first) = first(own) {
        return firsts.contains(&first).then_some(first);
    }
    let known = |set: &Guid| *set != Guid::NIL && own.1.contains(set);
    let mut alike = shown.iter().filter(|(_, sets)| sets.iter().any(known));
    alike.find_map(|other| first(other).filter(|first| firsts.contains(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guid(number: u8) -> Guid {
        Guid::from_stored([number; 16])
    }

    /// The files of each generation, by their indices, and whether their positions give an order.
    fn told(family_count: u16, files: &[(u16, &[u8])]) -> Vec<(Vec<usize>, bool)> {
        let shown = |index: &usize| {
            let (family, sets) = files[*index];
            (family, sets.iter().map(|set| guid(*set)).collect())
        };
        let all = (0..files.len()).collect();
        let generations = split(guid(100), family_count, all, shown);
        let told = generations.into_iter();
        told.map(|one| (one.files, one.order.is_some())).collect()
    }

    #[test]
    fn copies_from_before_and_after_an_overwrite_are_told_apart() {
        let files: [(u16, &[u8]); 4] = [(1, &[1]), (1, &[2, 3]), (1, &[1, 4]), (1, &[2])];
        assert_eq!(told(1, &files), [(vec![0, 2], true), (vec![1, 3], true)]);
        // Of one generation, copies can have gone different ways.
        let files: [(u16, &[u8]); 3] = [(1, &[1, 2]), (1, &[1, 3]), (1, &[0, 3])];
        assert_eq!(told(1, &files), [(vec![0, 1, 2], true)]);
    }

    #[test]
    fn what_an_interrupted_overwrite_left_stays_together() {
        let files: [(u16, &[u8]); 2] = [(1, &[2]), (2, &[1])];
        assert_eq!(told(2, &files), [(vec![0, 1], true)]);
        // A complete copy of one of them says what it is.
        let files: [(u16, &[u8]); 3] = [(1, &[2]), (2, &[1]), (1, &[1])];
        assert_eq!(told(2, &files), [(vec![0], false), (vec![1, 2], true)]);
    }

    #[test]
    fn a_file_with_a_damaged_first_set_is_known_by_another_one() {
        let files: [(u16, &[u8]); 4] = [(1, &[1, 3]), (1, &[2]), (1, &[0, 3]), (1, &[0])];
        let expected = [(vec![0, 2], true), (vec![1], true), (vec![3], false)];
        assert_eq!(told(1, &files), expected);
    }
}
