//! Documents that are marked as tutorials: `<!-- tutorial: FOLDER -->`, the folder being the one that their output names. All
//! commands are run in one folder, in order; figures may differ.

use super::{Figures, document, play, steps};
use crate::support::Place;

const MARK: &str = "<!-- tutorial: ";

#[test]
fn every_command_of_the_tutorials_prints_what_they_show() {
    let mut played = 0;
    for entry in std::fs::read_dir(document("")).expect("docs") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the document");
        let Some((_, rest)) = text.split_once(MARK) else {
            continue;
        };
        let (named, _) = rest.split_once(" -->").expect("the folder of the tutorial");
        let place = Place::empty();
        if let Err(difference) = play(&place, &steps(&text), named, Figures::Differ) {
            panic!("{}: {difference}", path.display());
        }
        played += 1;
    }
    assert!(played > 0, "no document is marked with {MARK}");
}
