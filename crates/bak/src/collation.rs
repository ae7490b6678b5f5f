//! Collations: the name of a database's collation, and the code page of a column's.

/// Flags in the wire protocol's collation, above the locale bits.
const IGNORES_CASE: u32 = 1 << 20;
const IGNORES_ACCENT: u32 = 1 << 21;
const IGNORES_WIDTH: u32 = 1 << 22;
const IGNORES_KANA: u32 = 1 << 23;
const BINARY: u32 = 1 << 24;
const BINARY_2: u32 = 1 << 25;
const UTF8: u32 = 1 << 26;

/// Collations of SQL Server itself, by sort order.
const SQL_COLLATIONS: [(u8, &str); 12] = [
    (30, "SQL_Latin1_General_CP437_BIN"),
    (31, "SQL_Latin1_General_CP437_CS_AS"),
    (32, "SQL_Latin1_General_CP437_CI_AS"),
    (34, "SQL_Latin1_General_CP437_CI_AI"),
    (40, "SQL_Latin1_General_CP850_BIN"),
    (41, "SQL_Latin1_General_CP850_CS_AS"),
    (42, "SQL_Latin1_General_CP850_CI_AS"),
    (44, "SQL_Latin1_General_CP850_CI_AI"),
    (51, "SQL_Latin1_General_CP1_CS_AS"),
    (52, "SQL_Latin1_General_CP1_CI_AS"),
    (53, "SQL_Latin1_General_Pref_CP1_CI_AS"),
    (54, "SQL_Latin1_General_CP1_CI_AI"),
];

/// Windows collations by locale, with the code page of their text.
const LOCALES: [(u32, &str, u16); 24] = [
    (0x0401, "Arabic", 1256),
    (0x0404, "Chinese_Taiwan_Stroke", 950),
    (0x0405, "Czech", 1250),
    (0x0406, "Danish_Norwegian", 1252),
    (0x0408, "Greek", 1253),
    (0x0409, "Latin1_General", 1252),
    (0x040A, "Traditional_Spanish", 1252),
    (0x040B, "Finnish_Swedish", 1252),
    (0x040C, "French", 1252),
    (0x040D, "Hebrew", 1255),
    (0x040E, "Hungarian", 1250),
    (0x040F, "Icelandic", 1252),
    (0x0411, "Japanese", 932),
    (0x0412, "Korean_Wansung", 949),
    (0x0415, "Polish", 1250),
    (0x0418, "Romanian", 1250),
    (0x0419, "Cyrillic_General", 1251),
    (0x041A, "Croatian", 1250),
    (0x041E, "Thai", 874),
    (0x041F, "Turkish", 1254),
    (0x0422, "Ukrainian", 1251),
    (0x042A, "Vietnamese", 1258),
    (0x0804, "Chinese_PRC", 936),
    (0x0C0A, "Modern_Spanish", 1252),
];

/// The locales by the index that column collations contain instead.
const LOCALE_INDEXES: [(u8, u16); 15] = [
    (0x01, 1256),
    (0x03, 950),
    (0x07, 1253),
    (0x08, 1252),
    (0x0C, 1255),
    (0x10, 932),
    (0x11, 949),
    (0x13, 1250),
    (0x15, 1251),
    (0x19, 874),
    (0x1A, 1254),
    (0x1F, 1257),
    (0x20, 1258),
    (0x24, 936),
    (0x28, 1252),
];

/// The name of a collation given as in the wire protocol, if it is known.
pub(crate) fn name(locale_and_flags: u32, sort: u8) -> Option<String> {
    if sort != 0 {
        let known = SQL_COLLATIONS.iter().find(|(id, _)| *id == sort);
        return known.map(|(_, name)| (*name).to_owned());
    }
    let locale = locale_and_flags & 0xF_FFFF;
    let (_, base, _) = LOCALES.iter().find(|(id, ..)| *id == locale)?;
    let version = match locale_and_flags >> 28 {
        0 => "",
        1 => "_90",
        2 => "_100",
        3 => "_140",
        _ => return None,
    };
    let has = |bit: u32| locale_and_flags & bit != 0;
    let mut name = format!("{base}{version}");
    if has(BINARY_2) {
        name.push_str("_BIN2");
    } else if has(BINARY) {
        name.push_str("_BIN");
    } else {
        name.push_str(if has(IGNORES_CASE) { "_CI" } else { "_CS" });
        name.push_str(if has(IGNORES_ACCENT) { "_AI" } else { "_AS" });
        if !has(IGNORES_KANA) {
            name.push_str("_KS");
        }
        if !has(IGNORES_WIDTH) {
            name.push_str("_WS");
        }
    }
    if has(UTF8) {
        name.push_str("_UTF8");
    }
    Some(name)
}

/// The code page of a column's collation id, if it is known: 65001 is UTF-8.
pub fn code_page(id: u32) -> Option<u16> {
    if id & 0x100 != 0 {
        return Some(65001);
    }
    match (id >> 24) as u8 {
        0 => LOCALE_INDEXES
            .iter()
            .find(|(index, _)| *index == id as u8)
            .map(|(_, page)| *page),
        30..=34 => Some(437),
        40..=49 | 55..=61 => Some(850),
        50..=54 => Some(1252),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_server() {
        let name = |bits, sort| name(bits, sort).unwrap();
        assert_eq!(name(0x00D0_0409, 52), "SQL_Latin1_General_CP1_CI_AS");
        assert_eq!(name(0x00D0_0409, 0), "Latin1_General_CI_AS");
        assert_eq!(name(0x00D0_0C0A, 0), "Modern_Spanish_CI_AS");
        assert_eq!(name(0x20D0_0409, 0), "Latin1_General_100_CI_AS");
        assert_eq!(name(0x0000_0409, 0), "Latin1_General_CS_AS_KS_WS");
    }
}
