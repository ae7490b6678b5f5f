//! Text in code pages.

use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_8, WINDOWS_874, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257,
    WINDOWS_1258,
};

use crate::collation::code_page;

/// The upper half of code page 437.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// The upper half of code page 850.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

/// Decodes text of a column with this collation. An unknown collation is treated as Latin.
pub(super) fn decode_text(bytes: &[u8], collation: u32) -> String {
    let known = code_page(collation).and_then(|page| decode_page(bytes, page.into()));
    known.unwrap_or_else(|| whole(WINDOWS_1252, bytes))
}

/// Decodes text in a code page; `None` if it is not known.
pub(super) fn decode_page(bytes: &[u8], page: u32) -> Option<String> {
    match page {
        437 => return Some(decode_half(bytes, CP437)),
        850 => return Some(decode_half(bytes, CP850)),
        _ => {}
    }
    let encoding = match page {
        874 => WINDOWS_874,
        932 => SHIFT_JIS,
        936 => GBK,
        949 => EUC_KR,
        950 => BIG5,
        1250 => WINDOWS_1250,
        1251 => WINDOWS_1251,
        1252 => WINDOWS_1252,
        1253 => WINDOWS_1253,
        1254 => WINDOWS_1254,
        1255 => WINDOWS_1255,
        1256 => WINDOWS_1256,
        1257 => WINDOWS_1257,
        1258 => WINDOWS_1258,
        65001 => UTF_8,
        _ => return None,
    };
    Some(whole(encoding, bytes))
}

fn whole(encoding: &'static Encoding, bytes: &[u8]) -> String {
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

fn decode_half(bytes: &[u8], upper: &str) -> String {
    let letters: Vec<char> = upper.chars().collect();
    let letter = |byte: &u8| match byte.checked_sub(0x80) {
        None => char::from(*byte),
        Some(index) => letters
            .get(usize::from(index))
            .copied()
            .unwrap_or('\u{fffd}'),
    };
    bytes.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_code_pages_have_all_their_letters() {
        assert_eq!(CP437.chars().count(), 128);
        assert_eq!(CP850.chars().count(), 128);
        assert_eq!(decode_text(&[0x81, b'x'], 30 << 24), "üx");
        assert_eq!(decode_text(&[0xFC, 0x81], 0x3400_D008), "ü\u{81}");
    }
}
