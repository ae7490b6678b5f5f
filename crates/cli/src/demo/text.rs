//! Generated posts, comments and people that compress like real ones.
//!
//! Words follow Zipf's law, as in any language; identifiers, numbers and links are random, as in
//! posts about programs.

/// A small random number generator: the same seed gives the same database everywhere.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (`SplitMix64`).
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: i64) -> i64 {
        (self.next() >> 1).cast_signed() % bound.max(1)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Frequent words, most frequent first.
const WORDS: &str = "the a to i is in of and it you that this for on with be not can as have if are \
or do use from an but your my will at by we so when what there was how one all get would like need \
set has using which just other then value data some should only code want here does new work more \
also file try table same any example could first way see query run no out problem change time they \
row column error add list them following name where into type each me order make question than two \
function index read call because database page write id select string update number key line create \
test user sure return find answer between after were result case log know before object class might \
method been something default most server over now think must these through back such different \
current statement even give many very solution check start second used possible without field point \
help every too transaction insert another while last field still backup text right version both put \
system take look memory able issue restore array based its size better end long view part again \
process level above below simply show path since connection lock date instead else however thread \
condition disk thing already well form schema means better actually join where cache command good \
few once really write whole correct large client happen understand small fine main exactly follow \
parameter script multiple fast slow buffer log primary foreign constraint reason output single save \
less handle empty define related specific stored compile request application thanks option directly \
assume length instance random recovery session delete group within full plan count store local";

/// Rare words are made of these.
const SYLLABLES: [&str; 40] = [
    "ba", "co", "den", "er", "fi", "gra", "hol", "in", "ja", "ker", "lo", "mi", "nor", "op", "pre",
    "qua", "ri", "sta", "tion", "un", "ver", "wa", "xi", "yo", "ze", "al", "bri", "cha", "di",
    "el", "fo", "gu", "hy", "is", "ju", "kro", "lin", "mo", "ne", "pul",
];

/// Distinct rare words.
const RARE_WORDS: i64 = 20_000;

/// Writes texts.
#[derive(Debug)]
pub(super) struct Writer {
    words: Vec<&'static str>,
    pub(super) dice: Dice,
}

impl Writer {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            words: WORDS.split_whitespace().collect(),
            dice: Dice::new(seed),
        }
    }

    /// A word, by Zipf's law.
    fn word(&mut self, into: &mut String) {
        let known = self.words.len() as f64;
        let rank = ((known + RARE_WORDS as f64).ln() * self.dice.fraction()).exp() - 1.0;
        match self.words.get(rank as usize) {
            Some(word) => into.push_str(word),
            None => rare_word(rank as u64, into),
        }
    }

    /// A sentence with its full stop.
    fn sentence(&mut self, into: &mut String) {
        let start = into.len();
        let count = 4 + self.dice.below(16);
        for index in 0..count {
            if index > 0 {
                into.push_str(if self.dice.below(14) == 0 { ", " } else { " " });
            }
            self.word(into);
        }
        if let Some(first) = into.get_mut(start..=start) {
            first.make_ascii_uppercase();
        }
        into.push_str(if self.dice.below(8) == 0 { "? " } else { ". " });
    }

    pub(super) fn title(&mut self) -> String {
        let mut title = String::new();
        self.sentence(&mut title);
        title.trim_end_matches(['.', '?', ' ']).to_owned()
    }

    /// A comment of one to three sentences.
    pub(super) fn comment(&mut self) -> String {
        let mut comment = String::new();
        for _ in 0..=self.dice.below(3) {
            self.sentence(&mut comment);
        }
        comment.trim_end().to_owned()
    }

    /// A post: paragraphs, code and links in HTML.
    pub(super) fn post(&mut self) -> String {
        let mut post = String::new();
        for _ in 0..=self.dice.below(4) {
            post.push_str("<p>");
            for _ in 0..=self.dice.below(5) {
                self.sentence(&mut post);
            }
            post.push_str("</p>\n\n");
            match self.dice.below(5) {
                0 => self.code(&mut post),
                1 => self.link(&mut post),
                _ => {}
            }
        }
        post
    }

    fn code(&mut self, into: &mut String) {
        into.push_str("<pre><code>");
        for _ in 0..2 + self.dice.below(6) {
            let number = self.dice.below(10_000);
            let mut name = String::new();
            self.word(&mut name);
            let line = match self.dice.below(4) {
                0 => format!("SELECT {name}, COUNT(*) FROM dbo.{name}s WHERE Id = {number};\n"),
                1 => format!("    var {name} = await {name}Service.GetAsync({number});\n"),
                2 => format!("if ({name} == null) {{ return {number}; }}\n"),
                _ => format!("UPDATE {name} SET Value = {number} WHERE {name}Id = @{name};\n"),
            };
            into.push_str(&line);
        }
        into.push_str("</code></pre>\n\n");
    }

    fn link(&mut self, into: &mut String) {
        let number = self.dice.below(90_000_000);
        let link = format!(
            "<p><a href=\"https://example.org/questions/{number}\" rel=\"nofollow\">here</a></p>\n\n"
        );
        into.push_str(&link);
    }

    /// A name of a person.
    pub(super) fn person(&mut self) -> String {
        let mut name = String::new();
        let rank = self.dice.below(RARE_WORDS);
        rare_word(rank.cast_unsigned(), &mut name);
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        name
    }
}

/// The rare word of a rank: always the same.
fn rare_word(rank: u64, into: &mut String) {
    let mut own = Dice::new(rank);
    for _ in 0..2 + own.below(3) {
        let syllable = own.next() as usize % SYLLABLES.len();
        into.push_str(SYLLABLES.get(syllable).unwrap_or(&""));
    }
}
