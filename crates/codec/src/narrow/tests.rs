use proptest::prelude::*;

use super::portable::Portable;
use super::*;

/// The narrowed form, byte by byte, as the documentation says.
fn reference(chunk: &[u8]) -> Vec<u8> {
    let is_pair = |at: usize| matches!(chunk.get(at..at + 2), Some(&[first, 0]) if first != 0);
    let number = |list: &mut Vec<u8>, mut number: usize| {
        while number >= 0x80 {
            list.push(number as u8 | 0x80);
            number >>= 7;
        }
        list.push(number as u8);
    };
    let (mut text, mut others, mut list) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut end_of_last) = (0, 0);
    while at < chunk.len() {
        let pairs = (at..chunk.len())
            .step_by(2)
            .take_while(|at| is_pair(*at))
            .count();
        if pairs >= 4 {
            number(&mut list, at - end_of_last);
            number(&mut list, pairs - 4);
            text.extend(chunk[at..at + 2 * pairs].iter().step_by(2));
            at += 2 * pairs;
            end_of_last = at;
        } else {
            others.push(chunk[at]);
            at += 1;
        }
    }
    [&head(text.len(), others.len())[..], &text, &others, &list].concat()
}

fn head(text_bytes: usize, other_bytes: usize) -> Vec<u8> {
    let lengths = [text_bytes as u32, other_bytes as u32];
    lengths.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn narrowed<K: Kernel>(chunk: &[u8]) -> Option<Vec<u8>> {
    // As in an encoder: longer than the chunk, with remains of other chunks.
    let mut output = vec![0xEE; chunk.len() + 7];
    let mut temporary = vec![0xDD; chunk.len()];
    let bytes = narrow_with::<K>(chunk, chunk.len(), &mut output, &mut temporary)?;
    output.truncate(bytes);
    Some(output)
}

fn widened<K: Kernel>(form: &[u8], bytes: usize) -> Result<Vec<u8>, &'static str> {
    let mut chunk = vec![0xCC; bytes];
    widen_with::<K>(form, &mut chunk).map(|()| chunk)
}

/// Both implementations make the form of the documentation, and the chunk of it again.
fn check(chunk: &[u8]) {
    let form = reference(chunk);
    let fits = form.len() <= chunk.len();
    for found in [narrowed::<Best>(chunk), narrowed::<Portable>(chunk)] {
        match found {
            Some(found) => assert!(found == form, "{} bytes", chunk.len()),
            None => assert!(!fits, "{} bytes, form of {}", chunk.len(), form.len()),
        }
    }
    for found in [
        widened::<Best>(&form, chunk.len()),
        widened::<Portable>(&form, chunk.len()),
    ] {
        assert!(found.as_deref() == Ok(chunk), "{:?}", found.err());
    }
    for bytes in [chunk.len() + 1, chunk.len().saturating_sub(1)] {
        let other = bytes != chunk.len();
        assert!(!other || widened::<Best>(&form, bytes).is_err());
        assert!(!other || widened::<Portable>(&form, bytes).is_err());
    }
}

fn text(pairs: usize) -> Vec<u8> {
    (0..pairs)
        .flat_map(|at| [b'a' + (at % 26) as u8, 0])
        .collect()
}

#[test]
fn runs_of_every_length_at_every_offset_come_back() {
    for before in (0..70).chain([127, 128, 129, 16_383, 16_384]) {
        for pairs in (0..40).chain([63, 64, 131, 132, 133]) {
            for after in [0, 1, 2, 31, 32, 33, 64] {
                let gap = |bytes| std::iter::repeat_n(0xFF, bytes);
                let run = text(pairs);
                check(&gap(before).chain(run).chain(gap(after)).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn neighbouring_runs_and_half_pairs_come_back() {
    let pieces: [&[u8]; 8] = [
        b"a\0b\0c\0d\0",
        b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0",
        b"a\0b\0c\0",
        b"\0",
        b"\0\0",
        b"x",
        b"\x19\x20",
        b"\0x\0x\0x\0x\0x",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                for fourth in pieces {
                    check(&[first, second, third, fourth].concat());
                }
            }
        }
    }
}

#[test]
fn text_is_half_as_long_and_its_share_is_foreseen() {
    let chunk = text(50_000);
    let form = narrowed::<Best>(&chunk).unwrap();
    assert_eq!(form.len(), HEAD_BYTES + 50_000 + 4);
    for promise in [
        promise_with::<Best>(&chunk),
        promise_with::<Portable>(&chunk),
    ] {
        assert!((490..=500).contains(&promise), "{promise}");
    }
    let mut half = vec![0x80; 100_000];
    half.extend(&chunk);
    for promise in [promise_with::<Best>(&half), promise_with::<Portable>(&half)] {
        assert!((230..=270).contains(&promise), "{promise}");
    }
    for other in [
        &[][..],
        b"UTF-8 text of one byte for each character",
        &[0; 9999],
    ] {
        assert_eq!(promise(other), 0);
    }
}

#[test]
fn text_in_pages_that_begin_and_end_without_it_is_foreseen() {
    for page_bytes in [512, 1024, 2048, 4096, 8192, 65536] {
        for chunk_bytes in [1 << 20, 4 << 20, (4 << 20) + 512, 8 << 20] {
            let mut page = vec![0; page_bytes / 4];
            page.extend(text(page_bytes / 4));
            page.resize(page_bytes, 0);
            let mut chunk = page.repeat(chunk_bytes / page_bytes);
            chunk.resize(chunk_bytes, 0);
            let promise = promise(&chunk);
            assert!(
                (210..=290).contains(&promise),
                "{page_bytes} {chunk_bytes}: {promise}"
            );
        }
    }
}

#[test]
fn a_form_that_gains_too_little_is_not_made() {
    let chunk = text(100);
    let (mut output, mut temporary) = (vec![0; 200], vec![0; 200]);
    assert_eq!(narrow(&chunk, 109, &mut output, &mut temporary), None);
    assert_eq!(narrow(&chunk, 110, &mut output, &mut temporary), Some(110));
    assert_eq!(narrow(&chunk, 110, &mut output, &mut []), None, "no room");
}

#[test]
fn forms_that_no_chunk_has_are_refused() {
    let refused = |lengths: (usize, usize), rest: &[u8], because: &str| {
        let form = [&head(lengths.0, lengths.1)[..], rest].concat();
        let bytes = 2 * lengths.0 + lengths.1;
        for found in [
            widened::<Best>(&form, bytes),
            widened::<Portable>(&form, bytes),
        ] {
            assert_eq!(found, Err(because), "{lengths:?} {rest:?}");
        }
    };
    let early = "narrowed text ends early";
    assert_eq!(widened::<Best>(&[0; 7], 0), Err(early));
    refused((4, 0), b"abc", early);
    refused((4, 2), b"abcdx", early);
    let huge = [&[0xFF; 8][..], b"abcd\0\0"].concat();
    let length = "narrowed text has another length than its chunk";
    assert_eq!(widened::<Best>(&huge, 8), Err(length));
    let other = "narrowed text does not agree with its runs";
    refused((4, 0), b"abcd\0\x01", other);
    refused((5, 0), b"abcde\0\0", other);
    refused((4, 1), b"abcdx\x02\0", other);
    refused((4, 0), b"abcd\x01\0", other);
    refused((4, 0), b"abcd", other);
    let divided = "narrowed text has a run divided in two";
    refused((8, 0), b"abcdefgh\0\0\0\0", divided);
    refused((4, 0), b"ab\0d\0\0", "narrowed text has a run with a zero");
    let early = "list of narrowed runs ends early";
    refused((4, 0), b"abcd\0", early);
    refused((4, 0), b"abcd\x80", early);
    let superfluous = "list of narrowed runs has a superfluous byte";
    refused((4, 0), b"abcd\0\x80\0", superfluous);
    let long = "list of narrowed runs has a number that is too long";
    refused((4, 0), b"abcd\x80\x80\x80\x80\x01\0", long);
    refused((4, 0), b"abcd\0\xFF\xFF\xFF\xFF", long);
}

/// Text and other bytes in pieces of all lengths.
fn mixed() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(prop_oneof![9 => 1..=255_u8, 1 => Just(0)], 0..90)
        .prop_map(|text| text.into_iter().flat_map(|byte| [byte, 0]).collect());
    let few = prop::collection::vec(0..=1_u8, 0..40);
    let any = prop::collection::vec(any::<u8>(), 0..90);
    prop::collection::vec(prop_oneof![text, few, any], 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_chunk_has_one_form_and_comes_back(chunk in mixed()) {
        check(&chunk);
    }

    #[test]
    fn both_implementations_read_damaged_forms_alike(
        chunk in mixed(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        bytes in 0..9000_usize,
        is_as_long: bool,
    ) {
        let mut form = reference(&chunk);
        for (at, byte) in changes {
            let at = at.index(form.len());
            form[at] = byte;
        }
        check_widening(&form, if is_as_long { chunk.len() } else { bytes });
    }

    #[test]
    fn both_implementations_read_any_bytes_alike(
        body in prop::collection::vec(any::<u8>(), 0..200),
        text_bytes in 0..200_usize,
        other_bytes in 0..200_usize,
    ) {
        let form = [&head(text_bytes, other_bytes)[..], &body].concat();
        check_widening(&form, 2 * text_bytes + other_bytes);
    }
}
