use super::*;

/// A document from its tokens in hexadecimal; spaces separate.
fn document(tokens: &str) -> Vec<u8> {
    let digits: String = tokens.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn untyped(tokens: &str) -> Result<String, String> {
    decode(&document(&format!("dfff01b004 {tokens}")))
}

/// An element `a` with one value.
fn with_value(tokens: &str) -> Result<String, String> {
    let text = untyped(&format!("f0016100 ef000001 f801 {tokens} f7"))?;
    let value = text.strip_prefix("<a>").unwrap().strip_suffix("</a>");
    Ok(value.unwrap().to_owned())
}

#[test]
fn documents_that_a_server_stored_become_their_text() {
    let stored = "f00472006f006f007400 ef000001 f801 f00269006400 ef000002 f602 11013700 f5 f0017800 ef000003 \
                  f803 110268006900 f7 f0017900 ef000004 f804 1103740077006f00 f7 f7";
    let text = "<root id=\"7\"><x>hi</x><y>two</y></root>";
    assert_eq!(untyped(stored).as_deref(), Ok(text));
    let stored = "f00372006f007700 ef000001 f801 f00269006400 ef000002 f602 11013100 f5 \
                  f00573007000610063006500 f003780079007a00 f00378006d006c00 ef040503 f603 110161 00 f5 f7";
    let text = "<row id=\"1\" xml:space=\"a\"/>";
    // Attributes end once; the second list is an error.
    assert!(untyped(stored).is_err());
    assert_eq!(untyped(&stored.replacen("f5 ", "", 1)).as_deref(), Ok(text));
}

#[test]
fn a_typed_document_of_a_server_becomes_its_text() {
    let stored = "dfff02b004 ea050001000100 f00472006f006f007400 f006750072006e003a0074006300 ef020001 f801 \
        f00578006d006c006e007300 ef000300 f602 1106750072006e003a0074006300 ea050071000013 f0016e00 ef000004 f603 \
        8713260a010068f3c9610000000000000000000000 f5 ea0901710000130a000000 f0016900 ef020005 f804 ea050071000013 \
        8713260a01008cb6611e0100000000000000000000 f7 ea0901130000130a000000 f0016400 ef020006 f805 ea050013000013 \
        8713260a0100fa954f070000000000000000000000 f7 ea0901150000150c000000 f00264007400 ef020007 f806 \
        ea050015000015 7e00252b0091400b f7 ea0901100000100a000000 f0016200 ef020008 f807 ea050010000010 8601 f7 \
        ea0901170000170c000000 f00264006400 ef020009 f808 ea050017000017 7f9b420b f7 ea09010f00000f0a000000 f0017300 \
        ef02000a f809 ea05000f00000f 1105680065006c006c006f00 f7 f7";
    let text = "<root xmlns=\"urn:tc\" n=\"42\"><i>123</i><d>3.14</d><dt>2020-01-02T03:04:05</dt><b>true</b>\
        <dd>2021-06-07</dd><s>hello</s></root>";
    assert_eq!(decode(&document(stored)).as_deref(), Ok(text));
}

#[test]
fn what_a_parser_would_change_is_escaped() {
    let hard = "0661 00 3c00 2600 0d00 0900 0a00".replace(' ', "");
    let text = with_value(&format!("11{hard}"));
    assert_eq!(text.as_deref(), Ok("a&lt;&amp;&#x0D;\t\n"));
    let attribute = untyped(&format!("f0016100 ef000001 f801 f601 11{hard} f5 f7"));
    let text = "<a a=\"a&lt;&amp;&#x0D;&#x09;&#x0A;\"/>";
    assert_eq!(attribute.as_deref(), Ok(text));
}

#[test]
fn an_element_with_an_empty_text_is_not_an_empty_element() {
    assert_eq!(untyped("f0016100 ef000001 f801 f7").as_deref(), Ok("<a/>"));
    assert_eq!(with_value("1100").as_deref(), Ok(""));
}

#[test]
fn namespaces_that_no_attribute_declares_are_declared() {
    // Names: 1 a, 2 urn:x, 3 p.
    let names = "f0016100 f0057500 7200 6e00 3a00 7800 f0017000 ef020301 ef020001";
    let text = untyped(&format!("{names} f801 f801 f7 f802 f801 f7 f7 f7"));
    let expected = "<p:a xmlns:p=\"urn:x\"><p:a/><a xmlns=\"urn:x\"><p:a/></a></p:a>";
    assert_eq!(text.as_deref(), Ok(expected));
    let text = untyped(&format!("{names} ef000001 f802 f803 f7 f7"));
    assert_eq!(
        text.as_deref(),
        Ok("<a xmlns=\"urn:x\"><a xmlns=\"\"/></a>")
    );
}

#[test]
fn instructions_comments_and_cdata_are_kept() {
    let text =
        untyped("f0016100 f401 01 7800 f3 01 7900 ef000001 f801 f2 01 3c00 f2 01 2600 f1 f7");
    assert_eq!(text.as_deref(), Ok("<?a x?><!--y--><a><![CDATA[<&]]></a>"));
}

#[test]
fn typed_values_have_the_text_of_their_types() {
    for (tokens, text) in [
        ("01feff", "-2"),
        ("02ffffffff", "-1"),
        ("030000c03f", "1.5"),
        ("040000000000205c40", "112.5"),
        ("04000000000000f07f", "INF"),
        ("05882a110000000000", "112.5000"),
        ("0601", "1"),
        ("0aff", ""),
        ("0a07 0902 01 3a010000", "3.14"),
        ("0a07 0902 00 2c010000", "-3.00"),
        ("8707 0902 00 2c010000", "-3"),
        ("0f03 00ff42", "AP9C"),
        ("8402 0aff", "0AFF"),
        ("1006 e4040000 80e9", "€é"),
        ("1006 ffff0000 8041", ""),
        ("12 22b00000 1c33ce00", "2023-06-15T12:30:45"),
        ("13 22b0 ee02", "2023-06-15T12:30:00"),
        ("7d02 640000", ""),
        ("7c00 000000 df420b 0000", "2021-08-14Z"),
        ("7b00 252b00 91400b 4a01", "2020-01-02T08:34:05+05:30"),
        ("7a00 252b00 91400b d4fe", "22:04:05-05:00"),
        ("88ff", "-1"),
        ("8bffffffffffffffff", "18446744073709551615"),
        ("8c01", "a"),
    ] {
        let found = with_value(tokens);
        match text {
            "" => assert!(found.is_err(), "{tokens}: {found:?}"),
            text => assert_eq!(found.as_deref(), Ok(text), "{tokens}"),
        }
    }
}

/// The fields of the numbers that SQL Server 2005 wrote, put together again.
#[test]
fn dates_of_2005_are_those_that_were_put_in() {
    let days = |year: u64, month: u64, day: u64| ((year + 9999) * 12 + month - 1) * 31 + day - 1;
    let seconds = (3 * 60 + 4) * 60 + 5;
    for (token, number, text) in [
        (0x81_u8, seconds * 1000 + 250, "03:04:05.25Z"),
        (
            0x82,
            days(2020, 2, 29) * 86_400_000 + seconds * 1000,
            "2020-02-29T03:04:05Z",
        ),
        (0x83, days(2020, 2, 29) * 1740 + 840, "2020-02-29Z"),
        (
            0x83,
            days(2020, 2, 29) * 1740 + 840 - 300,
            "2020-02-29-05:00",
        ),
    ] {
        let digits = format!("{:016x}", (number * 4).swap_bytes());
        let found = with_value(&format!("{token:02x}{digits}"));
        assert_eq!(found.as_deref(), Ok(text));
    }
}

#[test]
fn what_is_not_understood_or_not_well_formed_is_refused() {
    for tokens in [
        "f0016100 ef000001 f801",
        "f7",
        "f801 f7",
        "f0016100 ef000001 f801 fe f7",
        "f0016100 ef000001 f801 11013100 11013100 f7",
        "f0016100 ef000001 f801 1101 0100 f7",
        "f0016100 ef000001 f801 1101 00d8 f7",
        "f0013c00 ef000001 f801 f7",
        "f0016100 ef000001 f801 f3 02 2d002d00 f7",
        "f0016100 ef000001 f801 11ffffffff07",
        "f0016100 ef000001 f801 11ffffffffff",
        "f0016100 ef000101 f801 f601 11013100 f5 f7",
    ] {
        let found = untyped(tokens);
        assert!(found.is_err(), "{tokens}: {found:?}");
    }
    assert!(decode(&document("dfff03b004")).is_err());
    assert!(decode(b"<a/>").is_err());
    assert_eq!(decode(&[]).as_deref(), Ok(""));
}

#[test]
fn a_small_document_does_not_become_a_huge_text() {
    let name = "6100".repeat(4000);
    let tokens = format!("f0a01f{name} ef000001 {}", "f801f7".repeat(1000));
    assert!(untyped(&tokens).unwrap_err().contains("longer"));
    let levels = format!("f0016100 ef000001 {}", "f801".repeat(2000));
    assert!(untyped(&levels).unwrap_err().contains("levels"));
}
