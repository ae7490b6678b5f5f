//! `LOGIN7`: the user, the database and the driver (MS-TDS 2.2.6.4).

use std::fmt;

use crate::Error;
use crate::cursor::{Cursor, utf16};

const WHAT: &str = "LOGIN7";
/// Length of the fixed fields.
const FIXED_BYTES: usize = 94;
const CHARACTERS_MAX: usize = 128;
const FILE_CHARACTERS_MAX: usize = 260;
const FEATURES_MAX: usize = 64;
const VERSION_7_2: u32 = 0x7209_0002;
/// What some drivers say within TDS 8.0; others still say 7.4.
const VERSION_8_0: u32 = 0x0800_0000;

const INTEGRATED: u8 = 0x80;
const ODBC: u8 = 0x02;
const EXTENSION: u8 = 0x10;

const FEDERATED: u8 = 0x02;
const UTF8: u8 = 0x0A;
const USER_AGENT: u8 = 0x10;

/// A password, wiped when dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Drop for Password {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// The authentication method of a client. Only a password is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Name and password.
    Password,
    /// Integrated security.
    Integrated,
    /// A federated token.
    Federated,
}

/// The login data of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// TDS version in the client's encoding; the answer repeats it.
    pub tds_version: u32,
    /// The requested packet size; 0 leaves it to the server.
    pub packet_bytes: u32,
    /// The client's process.
    pub process: u32,
    /// Locale of the client.
    pub locale: u32,
    /// The driver requests ODBC's defaults: all ANSI settings on.
    pub is_odbc: bool,
    pub proof: Proof,
    /// The driver supports UTF-8 collations.
    pub knows_utf8: bool,
    /// The client's machine.
    pub host: String,
    /// The login's name.
    pub user: String,
    pub password: Password,
    pub application: String,
    /// The server's name, as used by the client.
    pub server: String,
    /// The driver's name.
    pub library: String,
    /// The requested language; empty for the default.
    pub language: String,
    /// The initial database; empty for the default.
    pub database: String,
    /// A file to attach; not supported.
    pub attach_file: String,
    /// Whether the login contains a new password.
    pub changes_password: bool,
    /// The driver's description of itself: name, version, system.
    pub user_agent: Option<String>,
}

impl Login {
    /// Reads the payload of a client's message.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut fixed = Cursor::new(payload, WHAT).window(FIXED_BYTES)?;
        let length = fixed.u32()?;
        if usize::try_from(length) != Ok(payload.len()) {
            return Err(Error::invalid("length of LOGIN7", length));
        }
        let tds_version = fixed.u32()?;
        if tds_version < VERSION_7_2 && tds_version != VERSION_8_0 {
            return Err(Error::TooOld { found: tds_version });
        }
        let packet_bytes = fixed.u32()?;
        let _client_version = fixed.u32()?;
        let process = fixed.u32()?;
        let _connection = fixed.u32()?;
        let [_, options, _, more_options] = fixed.bytes()?;
        let _time_zone = fixed.i32()?;
        let locale = fixed.u32()?;
        let mut text = |most| text_at(payload, &mut fixed, most).map(utf16);
        let host = text(CHARACTERS_MAX)?;
        let user = text(CHARACTERS_MAX)?;
        let scrambled = text_at(payload, &mut fixed, CHARACTERS_MAX)?;
        let password = Password(unscramble(scrambled));
        let mut text = |most| text_at(payload, &mut fixed, most).map(utf16);
        let application = text(CHARACTERS_MAX)?;
        let server = text(CHARACTERS_MAX)?;
        let extension = extension_at(payload, &mut fixed)?;
        let mut text = |most| text_at(payload, &mut fixed, most).map(utf16);
        let library = text(CHARACTERS_MAX)?;
        let language = text(CHARACTERS_MAX)?;
        let database = text(CHARACTERS_MAX)?;
        let _client_id: [u8; 6] = fixed.bytes()?;
        let _sspi = fixed.u32()?;
        let attach_file = text_at(payload, &mut fixed, FILE_CHARACTERS_MAX).map(utf16)?;
        let new_password = text_at(payload, &mut fixed, CHARACTERS_MAX)?;
        let features = match more_options & EXTENSION {
            0 => Features::default(),
            _ => Features::parse(extension)?,
        };
        Ok(Self {
            tds_version,
            packet_bytes,
            process,
            locale,
            is_odbc: options & ODBC != 0,
            proof: match options & INTEGRATED {
                0 if features.is_federated => Proof::Federated,
                0 => Proof::Password,
                _ => Proof::Integrated,
            },
            knows_utf8: features.knows_utf8,
            host,
            user,
            password,
            application,
            server,
            library,
            language,
            database,
            attach_file,
            changes_password: !new_password.is_empty(),
            user_agent: features.user_agent,
        })
    }
}

/// The bytes at the next pair of offset and length in `fixed`.
fn text_at<'a>(
    payload: &'a [u8],
    fixed: &mut Cursor<'_>,
    characters_max: usize,
) -> Result<&'a [u8], Error> {
    let (offset, characters) = (usize::from(fixed.u16()?), usize::from(fixed.u16()?));
    if characters > characters_max {
        return Err(Error::invalid(
            "length of a text of LOGIN7",
            characters as u64,
        ));
    }
    if characters == 0 {
        return Ok(&[]);
    }
    payload
        .get(offset..offset + 2 * characters)
        .ok_or(Error::CutShort { what: WHAT })
}

/// The list of features, found through a pointer to a pointer.
fn extension_at<'a>(payload: &'a [u8], fixed: &mut Cursor<'_>) -> Result<&'a [u8], Error> {
    let (offset, length) = (usize::from(fixed.u16()?), fixed.u16()?);
    if length == 0 {
        return Ok(&[]);
    }
    let cut = Error::CutShort { what: WHAT };
    let place = payload.get(offset..).ok_or_else(|| cut.clone())?;
    let start = Cursor::new(place, WHAT).u32()?;
    payload.get(start as usize..).ok_or(cut)
}

/// Passwords are sent with their nibbles swapped, XORed with 0xA5.
fn unscramble(bytes: &[u8]) -> String {
    let mut clear: Vec<u8> = bytes
        .iter()
        .map(|byte| (byte ^ 0xA5).rotate_left(4))
        .collect();
    let text = utf16(&clear);
    zeroize::Zeroize::zeroize(&mut clear);
    text
}

#[derive(Debug, Default)]
struct Features {
    is_federated: bool,
    knows_utf8: bool,
    user_agent: Option<String>,
}

impl Features {
    fn parse(list: &[u8]) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut list = Cursor::new(list, "feature list of LOGIN7");
        if list.is_empty() {
            return Ok(found);
        }
        for _ in 0..FEATURES_MAX {
            let feature = list.u8()?;
            if feature == 0xFF {
                return Ok(found);
            }
            let length = list.u32()? as usize;
            let data = list.take(length)?;
            match feature {
                FEDERATED => found.is_federated = true,
                UTF8 => found.knows_utf8 = true,
                USER_AGENT => found.user_agent = Some(agent_text(data)),
                _ => {}
            }
        }
        Err(Error::invalid(
            "number of features of LOGIN7",
            FEATURES_MAX as u64,
        ))
    }
}

/// The user agent is UTF-16, in some drivers after a version byte, or UTF-8 after one in early drivers.
fn agent_text(data: &[u8]) -> String {
    let body = data.get(1..).unwrap_or_default();
    let is_utf16 = |bytes: &[u8]| bytes.get(1) == Some(&0);
    let text = match (is_utf16(data), is_utf16(body)) {
        (true, _) => utf16(data),
        (false, true) => utf16(body),
        (false, false) => String::from_utf8_lossy(body).into_owned(),
    };
    text.chars().take(2 * CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn the_user_agent_is_read_however_a_driver_writes_it() {
        let text = "1|MS-JDBC|13.6";
        let versioned: Vec<u8> = [vec![1], wide(text)].concat();
        let early: Vec<u8> = [vec![1], text.as_bytes().to_vec()].concat();
        for data in [wide(text), versioned, early] {
            assert_eq!(agent_text(&data), text);
        }
        assert_eq!(agent_text(&[]), "");
        assert_eq!(agent_text(&[1]), "");
    }

    fn scramble(text: &str) -> Vec<u8> {
        let wide = wide(text);
        wide.iter().map(|byte| byte.rotate_left(4) ^ 0xA5).collect()
    }

    /// A login of `user` with `password` to `database`, with UTF-8 support.
    fn login(user: &str, password: &str, database: &str) -> Vec<u8> {
        let mut out = vec![0; 4];
        for field in [0x7400_0004_u32, 4096, 7, 4711, 0] {
            out.extend(field.to_le_bytes());
        }
        out.extend([0xE0, ODBC, 0, EXTENSION]);
        out.extend(0_u32.to_le_bytes());
        out.extend(0x0409_u32.to_le_bytes());
        let mut texts: Vec<u8> = Vec::new();
        let mut pair = |out: &mut Vec<u8>, bytes: &[u8], unit: usize| {
            out.extend(((FIXED_BYTES + texts.len()) as u16).to_le_bytes());
            out.extend(((bytes.len() / unit) as u16).to_le_bytes());
            texts.extend(bytes);
        };
        pair(&mut out, &wide("host"), 2);
        pair(&mut out, &wide(user), 2);
        pair(&mut out, &scramble(password), 2);
        pair(&mut out, &wide("app"), 2);
        pair(&mut out, &[], 2);
        let lengths = ["host", user, password, "app"].map(|text| 2 * text.chars().count());
        let list = FIXED_BYTES + lengths.iter().sum::<usize>() + 4;
        pair(&mut out, &(list as u32).to_le_bytes(), 1);
        pair(&mut out, &[UTF8, 1, 0, 0, 0, 1, 0xFF], 1);
        out.truncate(out.len() - 4);
        pair(&mut out, &[], 2);
        pair(&mut out, &[], 2);
        pair(&mut out, &wide(database), 2);
        out.extend([0; 6]);
        pair(&mut out, &[], 2);
        pair(&mut out, &[], 2);
        pair(&mut out, &[], 2);
        out.extend(0_u32.to_le_bytes());
        assert_eq!(out.len(), FIXED_BYTES);
        out.extend(texts);
        let length = out.len() as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    #[test]
    fn names_password_and_features_are_found() {
        let found = Login::parse(&login("sa", "pa§s", "Sales")).unwrap_or_else(|error| {
            panic!("{error}");
        });
        assert_eq!((&*found.user, &*found.database), ("sa", "Sales"));
        assert_eq!((&*found.host, &*found.application), ("host", "app"));
        assert_eq!(found.process, 4711);
        assert!(found.is_odbc && found.knows_utf8);
        assert_eq!(found.proof, Proof::Password);
    }

    #[test]
    fn the_password_is_read_and_never_printed() {
        let found = Login::parse(&login("sa", "Secret1", "")).unwrap();
        assert_eq!(found.password.reveal(), "Secret1");
        assert!(!format!("{found:?}").contains("Secret1"));
    }

    #[test]
    fn clients_older_than_7_2_are_named() {
        let mut bytes = login("sa", "x", "");
        bytes[4..8].copy_from_slice(&0x7100_0001_u32.to_le_bytes());
        let found = Login::parse(&bytes);
        assert_eq!(found, Err(Error::TooOld { found: 0x7100_0001 }));
    }

    #[test]
    fn every_cut_is_an_error_and_no_flipped_bit_panics() {
        let bytes = login("sa", "Secret1", "Sales");
        for cut in 0..bytes.len() {
            assert!(Login::parse(&bytes[..cut]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            drop(Login::parse(&bytes));
        }
    }
}
