//! What a file is that is no backup and no database, by its first bytes.

/// Programs that pack files, by what their files begin with.
const PACKED: &[(&[u8], &str)] = &[
    (b"\x1F\x8B", "gzip"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zX", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (b"7z\xBC\xAF", "7-Zip"),
];

/// The program that packed a file which begins so.
fn packer(found: &[u8]) -> Option<&'static str> {
    let packed = PACKED.iter().find(|(begin, _)| found.starts_with(begin));
    packed.map(|(_, program)| *program)
}

/// What to do with a file that begins so and is packed.
pub fn advice_to_unpack(found: &[u8]) -> Option<String> {
    packer(found).map(|program| format!("It is packed with {program}. Unpack it first."))
}

/// What a file of an unknown kind is or begins with, after "it" or "the file": its first bytes as text if they are one.
pub fn beginning(found: &[u8]) -> String {
    if let Some(program) = packer(found) {
        return format!("is packed with {program}. Unpack it first");
    }
    let shown = |byte: &u8| matches!(byte, b' '..=b'~').then(|| char::from(*byte));
    match found.iter().map(shown).collect::<Option<String>>() {
        Some(text) if text.is_empty() => "is empty".to_owned(),
        Some(text) => format!("begins with '{text}'"),
        None => {
            let bytes: Vec<_> = found.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("begins with the bytes {}", bytes.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_kind_or_text_or_bytes_or_nothing() {
        assert_eq!(beginning(b"hell"), "begins with 'hell'");
        assert_eq!(beginning(b"ab\0\x01"), "begins with the bytes 61 62 00 01");
        assert_eq!(beginning(b""), "is empty");
        assert_eq!(
            beginning(b"\x1F\x8B\x08\x00"),
            "is packed with gzip. Unpack it first"
        );
        assert_eq!(advice_to_unpack(b"hell"), None);
        assert!(advice_to_unpack(b"PK\x03\x04").is_some());
    }
}
